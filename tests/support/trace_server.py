"""A real HTTP server that gives one trace, and misbehaves as a test says: one act for each request, then the last."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Act = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One connection; `server.trace` is what the test made."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        trace: TraceServer = self.server.trace  # type: ignore[attr-defined]
        with trace.lock:
            trace.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            act = trace.acts.pop(0) if len(trace.acts) > 1 else trace.acts[0]
        act(self)

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", *, sent: int | None = None, **headers: str) -> None:
        """An answer that names its whole length, of which only `sent` bytes come before the connection ends."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])
        if sent is not None:
            self.wfile.flush()
            self.close_connection = True


@dataclass
class TraceServer:
    """What is served, and what was asked: paths and headers."""

    data: bytes
    acts: list[Act]
    address: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def template(self) -> str:
        return f"{self.address}/{{owner}}/{{repo}}/{{commit}}/{{path}}"

    def ranges(self) -> list[str | None]:
        return [headers.get("range") for _, headers in self.asked]


def good(data: bytes, etag: str = '"one"', *, sent: int | None = None) -> Act:
    """A server that knows ranges and tags."""

    def act(handler: Handler) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        same = handler.headers.get("If-Range", etag) == etag
        if asked is None or not same:
            handler.answer(200, data, sent=sent, ETag=etag)
            return
        start = int(asked[1])
        if start >= len(data):
            handler.answer(416, Content_Range=f"bytes */{len(data)}")
            return
        span = f"bytes {start}-{len(data) - 1}/{len(data)}"
        handler.answer(206, data[start:], sent=sent, ETag=etag, Content_Range=span)

    return act


def without_ranges(data: bytes, *, sent: int | None = None) -> Act:
    """A server that gives the whole file whatever is asked."""
    return lambda handler: handler.answer(200, data, sent=sent)


def status(code: int, **headers: str) -> Act:
    """A server that refuses."""
    return lambda handler: handler.answer(code, b"no", sent=None, **headers)


def dripping(data: bytes, *, seconds: float) -> Act:
    """A server that never stops for long, and never ends."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        for byte in data:
            try:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(seconds)

    return act


def endless(data: bytes) -> Act:
    """A server that names no length and goes on."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        try:
            for _ in range(10_000):
                handler.wfile.write(data)
        except OSError:
            return

    return act


@contextmanager
def trace_server(data: bytes, *acts: Act) -> Iterator[TraceServer]:
    """A server on this machine for the length of a test."""
    trace = TraceServer(data, list(acts) or [good(data)])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.trace = trace  # type: ignore[attr-defined]
    trace.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield trace
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
