"""`args` of the switch's application in a Serve config file: what does not change while it runs.

`serve_configs/canary.yaml` shows every field. The policy is where the switch starts from; once its
state folder holds settings, those hold, and are changed by `python -m orchestrator switch`.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from orchestrator.spec.section import (
    Count,
    Flag,
    Mapped,
    Name,
    Positive,
    Section,
    Text,
    broken,
    defaults,
)
from orchestrator.switch.guard.settings import GuardSettings
from orchestrator.switch.observation import ArmName
from orchestrator.switch.policy import Policy

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Arms(Section):
    """Where the engines answer: `unix:/path` (a socket only this user can open), or `http://…` for
    servers of your own. `{state}` stands for the state folder."""

    baseline: Text = "unix:{state}/baseline.sock"
    speculative: Text = "unix:{state}/speculative.sock"

    @model_validator(mode="after")
    def _addresses(self) -> Arms:
        for name in ("baseline", "speculative"):
            address = getattr(self, name)
            path = address.removeprefix("unix:")
            if path != address:
                good = path.startswith("{state}/") or PurePosixPath(path).is_absolute()
            else:
                parts = urlsplit(address)
                good = parts.scheme in ("http", "https") and bool(parts.hostname)
            if not good:
                raise broken(
                    "must be unix:/an/absolute/path or http://host:port",
                    value=address,
                    key=(name,),
                )
        return self


class Health(Section):
    """An arm that was silent is asked for one token; it is down when none comes."""

    period_s: Positive = 4.0
    """From the moment an arm dies or hangs to the last caller sent there: one period at most."""
    return_after_s: Positive = 30.0
    """An arm that came back gets callers again after this; each further fall within the hour
    doubles it."""
    connect_s: Positive = 2.0
    silence_s: Positive = 300.0
    """A request whose arm sends nothing for so long is given up."""
    keeper_silent_s: Positive = 15.0
    """Nobody watches when the keeper was silent for so long: everybody gets the baseline."""


class RequestLimits(Section):
    """What no request may exceed; the answer is then OpenAI's error body with 4xx."""

    body_bytes: Count = 4 * 2**20
    body_s: Positive = 30.0
    """A body that takes longer to arrive is refused."""
    max_tokens: Count | None = None
    """Largest `max_tokens` that may be asked for, and what a request without any gets charged."""
    choices: Count = 8
    """Largest `n` and `best_of`."""
    logprobs: Count = 20
    """Largest `top_logprobs`, `logprobs` and `prompt_logprobs`."""
    stops: Count = 16
    in_flight: Count = 1024
    """Requests at once, per replica of the switch, tenants together."""
    request_s: Positive = 3600.0
    """The longest that one request may take."""


class Tenant(Section):
    """Who may ask, and how much. A minute's worth may be used at once."""

    name: Name
    keys_sha256: tuple[Text, ...] = Field(min_length=1)
    """SHA-256 in hex of each key: `python -m orchestrator switch key` makes a key and its hash."""
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    """Prompt and answer together, as the engine counts them."""
    concurrency: Count | None = None
    isolated: Flag = True
    """Its prompts share no prefix cache with other tenants' (`cache_salt` is injected)."""

    @model_validator(mode="after")
    def _hashes(self) -> Tenant:
        for index, one in enumerate(self.keys_sha256):
            if len(one) != 64 or any(letter not in "0123456789abcdef" for letter in one):
                raise broken(
                    "must be a SHA-256 in lower-case hex",
                    value="a text of another form" if len(one) != 64 else "other letters",
                    hint="make one with: python -m orchestrator switch key",
                    key=("keys_sha256", index),
                )
        return self


class Operator(Section):
    """Who may change the switch: their name stands in the audit log."""

    name: Name
    token_sha256: Text


class Admin(Section):
    """The admin API, on a port of its own and on loopback unless told otherwise."""

    host: Text = "127.0.0.1"
    port: Count = 8001
    operators: tuple[Operator, ...] = ()
    """None named: a token is made at the first start and put into `{state}/admin.token`, for its
    owner's eyes only; whoever has it is called `operator`."""
    beyond_loopback: Flag = False

    @model_validator(mode="after")
    def _loopback(self) -> Admin:
        if self.host not in LOOPBACK and not self.beyond_loopback:
            raise broken(
                "must be a loopback address unless `beyond_loopback: true`",
                value=self.host,
                hint="prefer an SSH tunnel: tokens travel in the clear",
                key=("host",),
                involves=[("beyond_loopback",)],
            )
        return self


class Records(Section):
    """One line a request under `{state}/requests/`: who, when, which arm, how long, how many
    tokens, how it ended."""

    keep: Flag = True
    texts: Flag = False
    """Prompts and answers too. Off unless the operator says so."""
    file_bytes: Count = 32 * 2**20
    files: Count = 16
    """Per replica; the oldest goes first."""


class Sticky(Section):
    """Where a user's or session's name is looked for, in this order."""

    headers: tuple[Text, ...] = ("x-session-id", "x-user-id")
    body: tuple[Text, ...] = ("user", "prompt_cache_key", "safety_identifier")


class SwitchConfig(Section):
    """What one switch is."""

    state: Text
    """A folder on a local disk of the machine that the switch runs on; made if missing. `~` is the
    home of the user that Ray runs as."""
    arms: Arms = defaults()
    replicas: Count = 1
    policy: Policy = defaults()
    guard: GuardSettings | None = defaults()
    """Limits of the live comparison. None: nothing is watched but health."""
    health: Health = defaults()
    limits: RequestLimits = defaults()
    tenants: tuple[Tenant, ...] = ()
    """None: everybody may ask, without a key."""
    admin: Admin = defaults()
    records: Records = defaults()
    sticky: Sticky = defaults()
    category_header: Text = "x-prompt-category"
    paths: tuple[Text, ...] = (
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/models",
        "/tokenize",
        "/detokenize",
        "/version",
    )
    """What is passed on. Everything else of an engine (metrics, sleep, adapters, …) is not there
    for callers."""
    watch_usage: Flag = True
    """Streams are asked for their token counts; what a caller did not ask for is taken out of its
    stream again. False: streams without `include_usage` have no TPOT and no counted tokens."""
    arm_header: Text | None = None
    """A header that tells callers which arm answered. None: they cannot tell."""
    ray_actor_options: Mapped = Field(default={"num_cpus": 0})

    @model_validator(mode="after")
    def _names(self) -> SwitchConfig:
        names = [tenant.name for tenant in self.tenants]
        keys = [key for tenant in self.tenants for key in tenant.keys_sha256]
        if len(set(names)) < len(names):
            raise broken("tenants must have different names", value=names, key=("tenants",))
        if len(set(keys)) < len(keys):
            raise broken("a key must belong to one tenant", key=("tenants",))
        if not self.state.startswith(("/", "~/")):
            raise broken(
                "must begin with / or ~/: replicas run in other folders",
                value=self.state,
                key=("state",),
            )
        return self

    def address(self, arm: ArmName) -> str:
        given: str = getattr(self.arms, arm)
        return given.replace("{state}", self.state)


def switch_config(args: Any) -> SwitchConfig:
    """Raises: pydantic.ValidationError"""
    return SwitchConfig.model_validate(args)
