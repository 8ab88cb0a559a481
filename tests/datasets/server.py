"""A file server on the loopback, with the habits and the faults of real ones."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2

BODY = bytes(range(256)) * 2_000  # half a megabyte: several chunks


class Server:
    """A loopback server of one file, with the habits and the faults of real ones."""

    etag, ranges, length, body = '"version-1"', True, True, BODY
    status = published = redirect = None
    cut_after = None  # bytes of a body, then the connection is closed
    short_range = None  # bytes of a range that are sent although more were asked for
    chunked = wrong_start = False

    def __init__(self):
        self.requests = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    owner.answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.deadline = threading.Timer(60, self.http.shutdown)
        self.deadline.daemon = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}/file"

    def __enter__(self):
        self.thread.start()
        self.deadline.start()
        return self

    def __exit__(self, *_):
        self.deadline.cancel()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(5)

    def answer(self, request):
        self.requests.append(dict(request.headers))
        if self.redirect:
            head = {"Location": self.redirect}
            if self.published:
                head |= {"X-Linked-Etag": f'"{self.published}"', "X-Repo-Commit": "abc123"}
            return self.send(request, 302, b"", head)
        if self.status:
            return self.send(request, self.status, b"no such luck")
        head = {"ETag": self.etag} if self.etag else {}
        if self.etag and request.headers.get("If-None-Match") == self.etag:
            return self.send(request, 304, b"", head)
        if self.published:
            head |= {"X-Linked-Etag": f'"{self.published}"', "X-Repo-Commit": "abc123"}
        wanted = request.headers.get("Range", "").removeprefix("bytes=").partition("-")[0]
        if not (wanted and self.ranges):
            return self.send(request, 200, self.body, head)
        start, size = int(wanted), len(self.body)
        if start >= size:
            return self.send(request, 416, b"", {"Content-Range": f"bytes */{size}"})
        if self.wrong_start:
            start = 0
        part = self.body[start : start + (self.short_range or size)]
        end = start + len(part) - 1
        return self.send(
            request, 206, part, head | {"Content-Range": f"bytes {start}-{end}/{size}"}
        )

    def send(self, request, status, body, head=()):
        request.send_response(status)
        for name, value in dict(head).items():
            request.send_header(name, value)
        if self.chunked:
            request.send_header("Transfer-Encoding", "chunked")
        elif self.length or status != 200:
            request.send_header("Content-Length", str(len(body)))
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        cut = len(body) if self.cut_after is None else self.cut_after
        sent = body[:cut]
        if self.chunked:
            sent = b"%x\r\n%s\r\n" % (len(sent), sent) if sent else b""
            sent += b"0\r\n\r\n" if cut >= len(body) else b""
        request.wfile.write(sent)
        request.wfile.flush()

    @property
    def ranges_asked(self):
        return [headers.get("Range") for headers in self.requests]


def interrupt_after(monkeypatch, size, error=KeyboardInterrupt):
    """Raise an error, by default that of Ctrl-C, once some bytes of an answer have been read."""
    original = httpx2.Response.iter_bytes

    def some(response, *args):
        sent = 0
        for chunk in original(response, *args):
            yield chunk
            sent += len(chunk)
            if sent >= size:
                raise error

    monkeypatch.setattr(httpx2.Response, "iter_bytes", some)
