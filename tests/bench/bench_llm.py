"""The model endpoint: what client and ledger cost beside the call itself."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

from ragkit.llm import tally
from ragkit.llm.exchange import Exchange, body
from tests.bench import Row, least, timed
from tests.llm.asking import client, requests
from tests.llm.server import process

COUNT, ROUNDS, AT_ONCE = 2000, 4, 8


def run():
    before = {name: os.environ.get(name) for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    os.environ["OPENAI_API_KEY"] = "none"
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield from _overhead(Path(folder))
            yield _faults(Path(folder))
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _overhead(folder):
    """Calls per second, the best of some rounds: another process may hold the machine in one."""
    asked = requests(COUNT)
    cold, alone, warm, single = [], [], [], []
    with process() as server:
        os.environ["OPENAI_BASE_URL"] = server.url
        for number in range(ROUNDS):
            with client(folder / f"cold{number}.sqlite", timeout=60, concurrency=AT_ONCE) as asking:
                asking.complete(["warming up"])
                cold.append(_rate(lambda asking=asking: asking.complete(asked)))
                warm.append(_rate(lambda asking=asking: asking.complete(asked)))
                single.append(_rate(lambda asking=asking: [asking.complete([r]) for r in asked]))
            alone.append(asyncio.run(_openai_alone(server.url, asked)))
    what = f"calls/s cold, {COUNT:,} by {AT_ONCE} at once, ledger on disk"
    best, unit = max(cold), "calls/s"
    yield Row(what, best, max(alone), "openai package alone", best, 400, unit=unit)
    yield least(f"calls/s warm, one batch of {COUNT:,}", max(warm), 2000, unit)
    yield least("calls/s warm, one by one", max(single), 2000, unit)


def _faults(folder):
    """One request in five goes wrong; the time is set against that of the same run without.

    An answer takes 0.2 s and the time-out is 1 s: a reply that never ends costs five answers, and a
    request that waits for its next attempt keeps its place among the 32. On a
    busy machine an answer may come after its time-out, paid and not received, which no client can
    prevent: so many answers more may be paid as there were time-outs without an endless reply.
    """
    seconds = {}
    for share in (0.0, 0.2):
        with process(latency=0.2, share=share, seed=7) as server:
            os.environ["OPENAI_BASE_URL"] = server.url
            with client(folder / f"faults{share}.sqlite", timeout=1.0) as asking:
                asking.complete(["warming up"])
                seconds[share], results = timed(lambda: asking.complete(requests(COUNT)))
                rows = list(asking.ledger)
            stats = server.stats()
    answered = sum(row.state != "failed" for row in rows)
    late = sum(json.loads(row.faults).get("timeout", 0) for row in rows) - stats["endless"]
    twice = sum(stats["paid"].values()) - answered
    if not 0 <= twice <= max(late, 0) or len({result.key for result in results}) != COUNT:
        raise AssertionError(f"lost or paid twice: {twice} answers, {late} late; {tally(results)}")
    # The waits that the server asked for are not taken off: the bound holds with them.
    what, (calm, hard) = f"{COUNT:,} requests by 32, 20 % faults, none paid twice", seconds.values()
    return Row(what, hard, calm, "the same without faults", hard / calm, 1.6, False)


def _rate(ask):
    return COUNT / timed(ask)[0]


async def _openai_alone(url, asked):
    import openai

    bodies = iter(
        [json.loads(json.dumps(body(Exchange.pending(r, "openai:toy").plain))) for r in asked]
    )
    alone = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def work():
        for sent in bodies:
            await alone.chat.completions.create(**sent)

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - start
    await alone.close()
    return COUNT / seconds
