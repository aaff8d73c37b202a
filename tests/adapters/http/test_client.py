"""The client's contract: what it sends, when, and what it makes of every kind of answer."""

from __future__ import annotations

import ssl
from pathlib import Path

import orjson
import pytest

from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.simulated.null_process import NullProcess
from orchestrator.adapters.simulated.null_server import INPUT_TOKENS, read_truth
from orchestrator.plan.block import Timeouts
from orchestrator.plan.trial import LoadPoint
from orchestrator.ports import BlockObservation, Endpoint
from orchestrator.records import RequestError
from tests.adapters.http.conftest import CLOSE, block, byte_server, chunked, prompt

HASTY = Timeouts(connect_s=0.3, first_token_s=0.15, stall_s=0.15, total_s=5.0)
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("endpoint", ["chat", "completion"])
@pytest.mark.parametrize("framing", ["plain", "split", "comments", "crlf"])
def test_a_stream_is_read_in_full(
    null_server: NullProcess, client: HttpLoadClient, endpoint: str, framing: str
) -> None:
    # 7 tokens in chunks of 2: 2 + 2 + 2 + 1.
    where = null_server.endpoint(f"tokens=2;framing={framing};gap=0.001")
    seen = client.run_block(where, block(3, max_tokens=7, endpoint=endpoint))
    assert [record.request_id for record in seen.requests] == ["r0", "r1", "r2"]
    for record in seen.requests:
        assert record.error is None
        assert record.chunk_tokens == (2, 2, 2, 1)
        assert (record.output_tokens, record.tokens_from) == (7, "usage_continuous")
        assert (record.input_tokens, record.finish_reason) == (INPUT_TOKENS, "length")
        assert record.http_status == 200
        assert len(read_truth(record.text).sent_s) == 4


def test_times_are_in_order_and_never_before_the_server_sent(
    null_server: NullProcess, client: HttpLoadClient
) -> None:
    seen = client.run_block(null_server.endpoint("ttft=0.02;gap=0.01"), block(4, max_tokens=5))
    for record in seen.requests:
        truth = read_truth(record.text)
        assert record.sent_s is not None and record.end_s is not None
        # The server's own clock: between receiving and sending chunk i at least what was planned.
        for i, (at_s, sent_s) in enumerate(zip(record.chunk_s, truth.sent_s, strict=True)):
            assert sent_s - truth.received_s >= 0.02 + i * 0.01 - 1e-6
            assert at_s - record.sent_s >= sent_s - truth.received_s
        assert list(record.chunk_s) == sorted(record.chunk_s)
        assert record.end_s >= record.chunk_s[-1]
    assert seen.duration_s == max(record.end_s or 0 for record in seen.requests)


@pytest.mark.parametrize(
    ("schedule", "error", "chunks", "words"),
    [
        ("fault=status", RequestError.HTTP_STATUS, 0, "HTTP 500: InternalServerError: planned"),
        ("fault=error_event;after=2", RequestError.STREAM_ERROR, 2, "planned"),
        ("fault=reset", RequestError.RESET, 0, "reset"),
        ("fault=reset;after=2", RequestError.RESET, 2, "reset"),
        ("fault=eof;after=2", RequestError.TRUNCATED, 2, "mid-response"),
        ("fault=silence", RequestError.FIRST_TOKEN_TIMEOUT, 0, "0.15 s"),
        ("fault=silence;after=2", RequestError.STALL_TIMEOUT, 2, "0.15 s"),
        ("fault=garbage;after=2", RequestError.PROTOCOL, 2, "{not json"),
        ("fault=plain_json", RequestError.PROTOCOL, 0, "application/json"),
    ],
)
def test_every_planned_fault_has_its_class(
    null_server: NullProcess,
    client: HttpLoadClient,
    schedule: str,
    error: RequestError,
    chunks: int,
    words: str,
) -> None:
    limits = HASTY if "silence" in schedule else Timeouts()
    seen = client.run_block(null_server.endpoint(schedule), block(2, timeouts=limits))
    for record in seen.requests:
        assert record.error is error
        assert words in (record.error_text or "")
        assert len(record.chunk_s) == chunks
        assert record.end_s is not None
    # The fault was this request's alone: the next block on the same client is whole.
    assert _completed(client.run_block(null_server.endpoint(), block(2)))


def test_the_total_limit_ends_a_stream_that_never_stalls(
    null_server: NullProcess, client: HttpLoadClient
) -> None:
    limits = Timeouts(first_token_s=5, stall_s=5, total_s=0.5)
    where = null_server.endpoint("gap=0.02;chunks=1000000")
    (record,) = client.run_block(where, block(1, timeouts=limits)).requests
    assert record.error is RequestError.TOTAL_TIMEOUT
    assert record.chunk_s


def test_comments_are_no_progress(client: HttpLoadClient) -> None:
    script = [chunked(TOKEN, end=False), *[b"e\r\n: keep-alive\n\n\r\n"] * 3]
    with byte_server(script) as server:
        seen = client.run_block(server.endpoint(), block(1, timeouts=HASTY))
    assert seen.requests[0].error is RequestError.STALL_TIMEOUT


def test_nobody_listens(client: HttpLoadClient) -> None:
    with byte_server() as server:
        gone = server.endpoint()
    (record,) = client.run_block(gone, block(1)).requests
    assert record.error is RequestError.CONNECT
    assert record.http_status is record.chunk_tokens is record.output_tokens is None
    assert record.chunk_s == ()


def test_what_a_rejecting_server_says_is_kept(client: HttpLoadClient) -> None:
    body = b'{"object":"error","message":"max_tokens is too large","type":"BadRequestError"}'
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)
    with byte_server([head, body]) as server:
        (record,) = client.run_block(server.endpoint(), block(1)).requests
    assert (record.error, record.http_status) == (RequestError.HTTP_STATUS, 400)
    assert record.error_text == "HTTP 400: BadRequestError: max_tokens is too large"


def test_what_is_not_http_is_a_fault_of_protocol(client: HttpLoadClient) -> None:
    with byte_server([b"SSH-2.0-OpenSSH_9.6\r\n"]) as server:
        (record,) = client.run_block(server.endpoint(), block(1)).requests
    assert record.error is RequestError.PROTOCOL


def test_a_stream_that_ends_without_done_or_reason_is_truncated(client: HttpLoadClient) -> None:
    with byte_server([chunked(TOKEN)]) as server:
        (record,) = client.run_block(server.endpoint(), block(1)).requests
    assert record.error is RequestError.TRUNCATED
    assert record.text == "a"


def test_http_bodies_of_every_framing_are_read(client: HttpLoadClient) -> None:
    type_ = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    sized = type_ + b"Content-Length: %d\r\n\r\n" % len(TOKEN + DONE)
    scripts = [
        [sized, TOKEN, DONE],
        [b"HTTP/1.1 100 Continue\r\n\r\n", chunked(TOKEN, DONE)],
        [chunked(TOKEN, DONE, end=False), b"0\r\nTrailer: x\r\n\r\n"],
        [bytes([byte]) for byte in chunked(TOKEN, DONE)],  # one byte at a time
        [type_ + b"\r\n", TOKEN, DONE, CLOSE],  # ends with the connection
    ]
    with byte_server(*scripts) as server:
        plan = block(len(scripts), LoadPoint("closed", concurrency=1))
        seen = client.run_block(server.endpoint(), plan)
    assert [(record.error, record.text) for record in seen.requests] == [(None, "a")] * 5
    # Everything but the last left the connection usable.
    assert server.connections == 1


def test_a_chunk_that_looks_like_the_end_is_not_the_end(client: HttpLoadClient) -> None:
    tricky = b'data: {"choices":[{"index":0,"delta":{"content":"0"}}]}\r\n\r\n'
    head, _, body = chunked(tricky, TOKEN, DONE).partition(b"\r\n\r\n")
    cut = body.index(b"\r\n\r\n") + 4  # just after an event's blank line
    with byte_server([head + b"\r\n\r\n" + body[:cut], body[cut:]]) as server:
        (record,) = client.run_block(server.endpoint(), block(1)).requests
    assert (record.error, record.text) == (None, "0a")


def test_a_kept_connection_that_the_server_closed_costs_no_request(client: HttpLoadClient) -> None:
    # The second request finds its connection closed before one byte of an answer.
    with byte_server([chunked(TOKEN, DONE)], [CLOSE], [chunked(TOKEN, DONE)]) as server:
        plan = block(2, LoadPoint("closed", concurrency=1))
        seen = client.run_block(server.endpoint(), plan)
    assert _completed(seen)
    assert server.connections == 2


def test_a_fresh_connection_that_is_closed_is_a_failure(client: HttpLoadClient) -> None:
    with byte_server([CLOSE], [CLOSE]) as server:
        (record,) = client.run_block(server.endpoint(), block(1)).requests
    assert record.error is RequestError.RESET
    assert len(server.requests) == 2


def test_usage_can_be_asked_for_less(null_server: NullProcess) -> None:
    with HttpLoadClient(workers=0, usage="final") as less:
        (record,) = less.run_block(null_server.endpoint("tokens=2"), block(1)).requests
        assert (record.output_tokens, record.tokens_from) == (4, "usage_final")
        assert record.chunk_tokens is None and len(record.chunk_s) == 2
    with HttpLoadClient(workers=0, usage="none") as nothing:
        (record,) = nothing.run_block(null_server.endpoint(), block(1)).requests
        assert (record.error, record.output_tokens, record.tokens_from) == (None, None, "none")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("first_turn", [["s", "one"]]),
        ("own", [["s", "one"], ["s", "one", "a", "two"], ["s", "one", "a", "two", "a", "three"]]),
        (
            "reference",
            [["s", "one"], ["s", "one", "x", "two"], ["s", "one", "x", "two", "y", "three"]],
        ),
    ],
)
def test_turns_build_on_the_history_that_was_chosen(
    client: HttpLoadClient, history: str, expected: list[list[str]]
) -> None:
    talk = prompt(["one", "two", "three"], system="s", reference=("x", "y", "z"))
    with byte_server(*[[chunked(TOKEN, DONE)]] * 3) as server:
        seen = client.run_block(server.endpoint(), block(1, prompts=talk, history=history))
        sent = [orjson.loads(server.body(i))["messages"] for i in range(len(server.requests))]
    assert [[turn["content"] for turn in messages] for messages in sent] == expected
    assert [record.turn for record in seen.requests] == list(range(len(expected)))
    assert {record.request_id for record in seen.requests} == {"r0"}


def test_a_conversation_ends_with_the_turn_that_failed(client: HttpLoadClient) -> None:
    with byte_server([chunked(TOKEN, DONE)], [chunked(TOKEN)]) as server:
        talk = prompt(["one", "two", "three"])
        seen = client.run_block(server.endpoint(), block(1, prompts=talk, history="own"))
    assert [record.error for record in seen.requests] == [None, RequestError.TRUNCATED]


def test_tls_is_checked_against_the_authority_that_was_named(tmp_path: Path) -> None:
    certificate = _self_signed(tmp_path)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate)
    answer = [chunked(TOKEN, DONE)]
    with byte_server(answer, answer, tls=server_side) as server:
        where = server.endpoint()
        with HttpLoadClient(workers=0, tls_ca_file=str(certificate)) as knows:
            assert _completed(knows.run_block(where, block(1)))
        with HttpLoadClient(workers=0, tls_verify=False) as trusts:
            assert _completed(trusts.run_block(where, block(1)))
        with HttpLoadClient(workers=0) as doubts:
            (record,) = doubts.run_block(where, block(1)).requests
            assert record.error is RequestError.CONNECT
            assert "certificate" in (record.error_text or "").lower()


def test_proxies_in_the_environment_are_ignored(
    null_server: NullProcess, client: HttpLoadClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert _completed(client.run_block(null_server.endpoint(), block(1)))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_plan_that_cannot_be_sent_is_refused(null_server: NullProcess, workers: int) -> None:
    timeless = block(1, LoadPoint("open", rate_rps=1.0))
    with HttpLoadClient(workers) as either:
        with pytest.raises(ValueError, match=r"needs offset_s, got None"):
            either.run_block(null_server.endpoint(), timeless)
        with pytest.raises(ValueError, match="base_url must be http"):
            either.run_block(Endpoint("x", "tcp://x", "m"), block(1))
        assert _completed(either.run_block(null_server.endpoint(), block(1)))


def test_an_empty_block_is_over_at_once(null_server: NullProcess, client: HttpLoadClient) -> None:
    seen = client.run_block(null_server.endpoint(), block(0))
    assert (seen.requests, seen.duration_s) == ((), 0.0)


def _completed(seen: BlockObservation) -> bool:
    return bool(seen.requests) and all(record.completed for record in seen.requests)


def _self_signed(folder: Path) -> Path:
    """One PEM file with a key and a certificate for localhost."""
    import datetime

    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
