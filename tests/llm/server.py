"""A chat endpoint on loopback for tests: it misbehaves on demand and keeps count.

In a thread (`serve`) the replies come from a function; as a program (`process`) from a seeded
plan of faults. Either way it stops by itself: when told, when its parent is gone, or after its
lifetime.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = [
    "429",
    "500",
    "reset",
    "garbage",
    "cut_envelope",
    "cut_content",
    "wrong_schema",
    "slow",
    "endless",
]
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


class Server:
    """Counts what it is asked (`asked`) and what it answered in full (`paid`), by request."""

    def __init__(self, answer):
        self.answer = answer
        self.asked, self.paid, self.statuses = Counter(), Counter(), Counter()
        self.bodies, self.headers = [], []
        self.open = self.most_open = 0
        self.endless = 0

    async def start(self):
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self):
        return {
            "asked": dict(self.asked),
            "paid": dict(self.paid),
            "statuses": dict(self.statuses),
            "endless": self.endless,
        }


class _Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server, self.data, self.tasks = server, b"", set()

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        for task in self.tasks:
            task.cancel()

    def data_received(self, data):
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.data[:end].decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers.get("content-length", 0))
        if len(self.data) < end + 4 + length:
            return
        body, self.data = self.data[end + 4 : end + 4 + length], self.data[end + 4 + length :]
        if first.startswith("GET /stats"):
            self.send(json.dumps(self.server.stats()))
            return
        task = asyncio.ensure_future(self.reply(body, head))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def send(self, body, status=200, headers=(), length=None):
        body = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in dict(headers).items()]
        lines += [f"content-length: {len(body) if length is None else length}", "", ""]
        self.transport.write("\r\n".join(lines).encode() + body)

    async def reply(self, body, head):
        server = self.server
        digest = hashlib.sha256(body).hexdigest()[:16]
        nth = server.asked[digest]
        server.asked[digest] += 1
        server.bodies.append(body.decode())
        server.headers.append(head)
        server.open += 1
        server.most_open = max(server.most_open, server.open)
        try:
            reply = server.answer(json.loads(body), nth, digest)
            server.statuses[reply.status] += 1
            server.endless += reply.drip > 60
            if reply.delay:
                await asyncio.sleep(reply.delay)
            if reply.reset:
                self.transport.abort()
                return
            if reply.drip:
                text = reply.body.encode()
                self.send(b"", length=len(text))
                for start in range(0, len(text), 40):
                    await asyncio.sleep(reply.drip * 40 / len(text))
                    self.transport.write(text[start : start + 40])
            else:
                self.send(reply.body, reply.status, reply.headers)
            if reply.paid and reply.status == 200 and not self.transport.is_closing():
                server.paid[digest] += 1
        finally:
            server.open -= 1


@contextmanager
def serve(answer, lifetime=60.0):
    """Run a server in a thread; `answer(body, nth, digest)` returns a `Reply` or its body."""

    def replied(body, nth, digest):
        reply = answer(body, nth, digest)
        return reply if isinstance(reply, Reply) else Reply(reply)

    server = Server(replied)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    def run():
        asyncio.set_event_loop(loop)
        loop.run_until_complete(server.start())
        loop.call_later(lifetime, loop.stop)
        loop.call_soon(ready.set)
        loop.run_forever()
        server._server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


class Process:
    """A server in a process of its own, so that it takes no time from the client's."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/v1"
        self._stats = f"http://127.0.0.1:{port}/stats"

    def stats(self):
        with urllib.request.urlopen(self._stats, timeout=10) as reply:
            return json.load(reply)


@contextmanager
def process(latency=0.0, share=0.0, seed=0, kinds=9, lifetime=300.0):
    """Run a server with the seeded plan of faults in a process of its own."""
    options = [str(value) for value in (latency, share, seed, kinds, lifetime)]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.llm.server", *options],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Process(int(child.stdout.readline()))
    finally:
        child.stdin.close()
        child.wait(10)
        child.stdout.close()


async def _main(latency, share, seed, kinds, lifetime):
    server = Server(plan(latency, share, seed, kinds))
    await server.start()
    print(server.port, flush=True)
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), gone.set)  # readable at the end of the pipe
    try:
        await asyncio.wait_for(gone.wait(), lifetime)
    except TimeoutError:
        print("lifetime over", file=sys.stderr)


if __name__ == "__main__":
    latency, share, seed, kinds, lifetime = map(float, sys.argv[1:])
    asyncio.run(_main(latency, share, int(seed), int(kinds), lifetime))
