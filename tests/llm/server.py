"""A chat endpoint on loopback for tests: it misbehaves on demand and keeps count.

In a thread (`serve`) the replies come from a function; as a program (`process`) from a seeded
plan of faults, until its input ends.
"""

from __future__ import annotations

import hashlib
import json
import select
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = "429 500 reset garbage cut_envelope cut_content wrong_schema slow endless".split()
SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["yes", "no"]}, "score": {"type": "integer"}},
    "required": ["verdict", "score"],
    "additionalProperties": False,
}


def chat(content="fine", *, model="toy", finish="stop", tokens=(7, 3), **message):
    """A reply of the chat endpoint, as JSON text."""
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
    }
    if tokens:
        reply["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return json.dumps(reply)


def tool_call(name, arguments, id="c"):
    """A call of a tool in an assistant's message; `arguments` are JSON text, or a value to write."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def calls(*made):
    """A reply that calls tools, as JSON text."""
    return chat(None, finish="tool_calls", tool_calls=list(made))


@dataclass
class Reply:
    body: str | bytes = field(default_factory=chat)
    status: int = 200
    headers: dict = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False
    drip: float = 0.0  # seconds over which the body is sent, bit by bit
    paid: bool = True  # a full answer, for which an endpoint would send a bill


def plan(latency, share, seed, kinds):
    """Return the reply function of the fault test: a `share` of requests goes wrong, by hash.

    The faults are the first `kinds` of `FAULTS`: only the last of them, a reply without an end,
    costs a whole time-out.
    """

    def answer(body, nth, digest):
        draw = int.from_bytes(hashlib.sha256(f"{seed}/{digest}/{nth}".encode()).digest()[:8], "big")
        good = chat(json.dumps({"verdict": "yes" if draw % 2 else "no", "score": draw % 100}))
        if draw / 2**64 >= share:
            return Reply(good, delay=latency)
        match FAULTS[draw // 2 % kinds]:
            case "429":
                return Reply("{}", 429, {"retry-after": "0.1"}, paid=False)
            case "500":
                return Reply('{"error": {"message": "oops"}}', 500, paid=False)
            case "reset":
                return Reply(reset=True, paid=False)
            case "garbage":
                return Reply(b"\xff<html>no</html>", paid=False)
            case "cut_envelope":
                return Reply(good[:-40], delay=latency, paid=False)
            case "cut_content":
                return Reply(chat('{"verdict": "ye', finish="length"), delay=latency)
            case "wrong_schema":
                return Reply(chat('{"verdict": "maybe"}'), delay=latency)
            case "slow":
                return Reply(good, drip=4 * latency)
            case "endless":
                return Reply(good, drip=3600.0, paid=False)

    return answer


class Server(ThreadingHTTPServer):
    """Counts what it is asked (`asked`) and what it answered in full (`paid`), by request."""

    request_queue_size = 128

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked, self.paid, self.statuses = Counter(), Counter(), Counter()
        self.bodies, self.headers = [], []
        self.open = self.most_open = self.endless = 0
        self.counting = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_):
        """A client that is gone is no error."""

    def stats(self):
        with self.counting:
            counted = {name: dict(getattr(self, name)) for name in ("asked", "paid", "statuses")}
            return counted | {"endless": self.endless}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(Reply(json.dumps(self.server.stats()), paid=False))

    def send(self, reply, digest=""):
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        lines = [f"HTTP/1.1 {reply.status} X", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        head = "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode()
        step = 40 if reply.drip else len(body) + 1
        *parts, last = [body[at : at + step] for at in range(0, len(body) + 1, step)]
        self.wfile.write(head if parts else b"")
        for part in parts:
            time.sleep(reply.drip / len(parts))
            self.wfile.write(part)
        if reply.paid and reply.status == 200:  # before the last byte, after which all may end
            with self.server.counting:
                self.server.paid[digest] += 1
        self.wfile.write(last if parts else head + last)

    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        digest = hashlib.sha256(body).hexdigest()[:16]
        with server.counting:
            nth = server.asked[digest]
            server.asked[digest] += 1
            server.bodies.append(body.decode())
            server.headers.append(str(self.headers))
            server.open += 1
            server.most_open = max(server.most_open, server.open)
        try:
            reply = server.answer(json.loads(body), nth, digest)
            reply = reply if isinstance(reply, Reply) else Reply(reply)
            with server.counting:
                server.statuses[reply.status] += 1
                server.endless += reply.drip > 60
            time.sleep(reply.delay)
            gone = bool(select.select([self.connection], [], [], 0)[0])
            if reply.reset or gone:
                self.close_connection = True
                return
            self.send(reply, digest)
        finally:
            with server.counting:
                server.open -= 1


@contextmanager
def serve(answer):
    """Run a server in a thread; `answer(body, nth, digest)` returns a `Reply` or its body."""
    server = Server(answer)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Process:
    """A server in a process of its own, so that it takes no time from the client's."""

    def __init__(self, url):
        self.url = url

    def stats(self):
        with urllib.request.urlopen(f"{self.url}/stats", timeout=10) as reply:
            return json.load(reply)


@contextmanager
def process(latency=0.0, share=0.0, seed=0, kinds=9):
    """Run a server with the seeded plan of faults in a process of its own."""
    command = [sys.executable, "-m", "tests.llm.server", *map(str, (latency, share, seed, kinds))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as child:  # it stops with its input
        yield Process(child.stdout.readline().strip())


if __name__ == "__main__":
    latency, share, seed, kinds = map(float, sys.argv[1:])
    with serve(plan(latency, share, int(seed), int(kinds))) as running:
        print(running.url, flush=True)
        select.select([sys.stdin], [], [], 300)
