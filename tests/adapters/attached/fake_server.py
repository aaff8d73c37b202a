"""Small servers by hand: they speak as vLLM, SGLang, llama.cpp, TGI and strict OpenAI ones do."""

from __future__ import annotations

import datetime
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

Usage = Literal["continuous", "final", "rejects_continuous", "rejects_options", "never"]
"""`final` puts up with continuous_usage_stats and does not honour it; `never` does so with all."""


@dataclass
class FakeServer:
    """How it behaves, and what it was asked."""

    models: Sequence[Mapping[str, Any]] = ({"id": "m"},)
    key: str | None = None
    open_pages: Sequence[str] = ()
    """Paths that need no key."""
    pages: Mapping[str, Any] = field(default_factory=dict)
    """Path -> JSON, or text."""
    usage: Usage = "continuous"
    refuses: Sequence[str] = ()
    """Fields of a request that it answers with HTTP 400."""
    quotes_key: bool = False
    """Errors quote the Authorization header, as careless servers do."""
    loading: int = 0
    """How often it answers HTTP 503 before it is ready."""
    fails_every: int | None = None
    """Every n-th request is answered with HTTP 500."""
    dies_after: int | None = None
    """After so many requests the connection breaks, and nobody listens any more."""
    redirect_to: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    tokens_per_chunk: int = 1
    url: str = ""
    asked: list[tuple[str, Mapping[str, str], Any]] = field(default_factory=list)
    """(path, headers, body), in order."""

    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.asked if body is not None]


VLLM = {"/version": {"version": "0.32.0"}, "/health": ""}
SGLANG = {
    "/get_server_info": {
        "version": "0.5.2",
        "served_model_name": "m",
        "max_total_num_tokens": 4096,
        "api_key": "the key itself",
        "speculative_algorithm": "EAGLE",
        "speculative_num_steps": 3,
        "speculative_draft_model_path": None,
    },
    "/health": "",
    "/metrics": "sglang:spec_accept_length 2.4\nsglang:spec_verify_calls_total 7\n"
    "sglang:generation_tokens_total 100\n",
}
LLAMA_CPP = {
    "/props": {"build_info": "b6000-abcdef", "total_slots": 4, "model_path": "/m.gguf"},
    "/health": {"status": "ok"},
}
TGI = {
    "/info": {"version": "3.3.4", "docker_label": "sha-1", "model_id": "m"},
    "/health": "",
}


@contextmanager
def serving(server: FakeServer, tls: ssl.SSLContext | None = None) -> Iterator[FakeServer]:
    """Runs `server` on a free port of the loopback."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    httpd.daemon_threads = True
    if tls is not None:
        httpd.socket = tls.wrap_socket(httpd.socket, server_side=True)
    scheme, host = ("https", "localhost") if tls else ("http", "127.0.0.1")
    server.url = f"{scheme}://{host}:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None: ...

        def do_GET(self) -> None:
            server.asked.append((self.path, dict(self.headers), None))
            if server.redirect_to is not None:
                self._send(307, b"", Location=server.redirect_to)
            elif server.loading > 0:
                server.loading -= 1
                self._error(503, "loading the model")
            elif self._locked_out():
                self._error(401, "invalid key")
            elif self.path == "/v1/models" and server.models:
                self._json(200, {"object": "list", "data": list(server.models)})
            elif self.path in server.pages:
                page = server.pages[self.path]
                if isinstance(page, str):
                    self._send(200, page.encode())
                else:
                    self._json(200, page)
            else:
                self._error(404, "no such page")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, dict(self.headers), body))
            options = body.get("stream_options") or {}
            refused = [name for name in server.refuses if name in body]
            number = len(server.bodies())
            if server.dies_after is not None and number > server.dies_after:
                assert isinstance(self.server, ThreadingHTTPServer)
                self.server.socket.close()
                self.connection.close()
                self.close_connection = True
            elif server.fails_every is not None and number % server.fails_every == 0:
                self._error(500, "planned fault")
            elif self._locked_out():
                self._error(401, "invalid key")
            elif refused:
                self._error(400, f"unknown field {refused[0]}")
            elif options and server.usage == "rejects_options":
                self._error(422, "unknown field stream_options")
            elif "continuous_usage_stats" in options and server.usage == "rejects_continuous":
                self._error(400, "unknown field continuous_usage_stats")
            else:
                self._stream(body, options)

        def _locked_out(self) -> bool:
            if server.key is None or self.path in server.open_pages:
                return False
            return self.headers.get("Authorization") != f"Bearer {server.key}"

        def _stream(self, body: Any, options: Mapping[str, Any]) -> None:
            each = options.get("continuous_usage_stats") and server.usage == "continuous"
            last = options.get("include_usage") and server.usage != "never"
            total = body["max_tokens"]
            events, sent = [], 0
            while sent < total:
                now = min(server.tokens_per_chunk, total - sent)
                sent += now
                reason = "length" if sent == total else None
                choice = {"index": 0, "delta": {"content": "word " * now}, "finish_reason": reason}
                if self.path == "/v1/completions":
                    choice = {"index": 0, "text": "word " * now, "finish_reason": reason}
                chunk: dict[str, Any] = {"choices": [choice]}
                if each:
                    chunk["usage"] = _usage(sent)
                events.append(chunk)
            if last:
                events.append({"choices": [], "usage": _usage(total)})
            lines = b"".join(b"data: %b\n\n" % json.dumps(e).encode() for e in events)
            self._send(200, lines + b"data: [DONE]\n\n", **{"Content-Type": "text/event-stream"})

        def _error(self, status: int, message: str) -> None:
            if server.quotes_key:
                message += f" (got {self.headers.get('Authorization')})"
            self._json(status, {"error": {"message": message}})

        def _json(self, status: int, value: Any) -> None:
            self._send(status, json.dumps(value).encode(), **{"Content-Type": "application/json"})

        def _send(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**server.headers, **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _usage(completion: int) -> dict[str, int]:
    return {"prompt_tokens": 9, "completion_tokens": completion, "total_tokens": 9 + completion}


def self_signed(folder: Path) -> Path:
    """One PEM file with a key and a certificate for localhost."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    today = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    alternative = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - day)
        .not_valid_after(today + day)
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "server.pem"
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def server_side(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
