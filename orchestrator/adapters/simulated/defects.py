"""Wrong behaviour that may be planted in a simulated engine: each is one that real engines had.

engine: {simulated: {speculative: {faults: {defects: [ignores_seed, crashes_on_echo]}}}}
"""

from __future__ import annotations

from enum import StrEnum


class Defect(StrEnum):
    """What the engine does wrong, whatever it is asked."""

    GREEDY_DIFFERS = "greedy_differs"
    """From the fifth token on, the second-best token at temperature 0."""
    IGNORES_TEMPERATURE = "ignores_temperature"
    """Always greedy."""
    ACCEPTS_TOO_MUCH = "accepts_too_much"
    """Above temperature 0, drafted tokens are accepted three times as readily as is right."""
    BIASED_BONUS_TOKEN = "biased_bonus_token"
    """Above temperature 0, the token after the accepted ones comes from the draft."""
    IGNORES_TOP_P = "ignores_top_p"
    IGNORES_TOP_K = "ignores_top_k"
    IGNORES_MIN_P = "ignores_min_p"
    IGNORES_REPETITION_PENALTY = "ignores_repetition_penalty"
    IGNORES_PRESENCE_PENALTY = "ignores_presence_penalty"
    IGNORES_FREQUENCY_PENALTY = "ignores_frequency_penalty"
    IGNORES_SEED = "ignores_seed"
    IGNORES_LOGIT_BIAS = "ignores_logit_bias"
    IGNORES_CONSTRAINTS = "ignores_constraints"
    IGNORES_TOOLS = "ignores_tools"
    IGNORES_ECHO = "ignores_echo"
    IGNORES_SYSTEM = "ignores_system"
    IGNORES_ADAPTER = "ignores_adapter"
    OVERRUNS_STOP_STRING = "overruns_stop_string"
    """Accepted drafts behind the stop string are given out as well."""
    OVERRUNS_STOP_TOKEN = "overruns_stop_token"
    OVERRUNS_MAX_TOKENS = "overruns_max_tokens"
    ENDS_EARLY_NEAR_LIMIT = "ends_early_near_limit"
    """Stops a few tokens before the model's length limit: room is kept for drafts."""
    ONE_CHOICE_ONLY = "one_choice_only"
    DROPS_LOGPROBS = "drops_logprobs"
    """No log-probabilities for accepted drafts: one entry in three is missing."""
    DROPS_PROMPT_LOGPROBS = "drops_prompt_logprobs"
    STREAM_DROPS_TEXT = "stream_drops_text"
    """The last chunk of a stream is lost."""
    MIXES_UP_BATCH = "mixes_up_batch"
    """In a batch, the first request's sampling settings count for all."""
    REFUSES_MIN_P = "refuses_min_p"
    """Says that it does not support it."""
    CRASHES_ON_PROMPT_LOGPROBS = "crashes_on_prompt_logprobs"
