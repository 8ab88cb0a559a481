"""What was asked while something ran: the requests that it used, whichever process asked them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragkit import paths
from ragkit.llm.exchange import TOKENS, Failure, Value, add
from ragkit.llm.prices import load_prices

VARIABLE = "RAGKIT_USED"  # names the files of the records under way; processes inherit it
_NAMES = ("model", "purpose", "prompt", "ledger")


def note(results: Iterable[Value | Failure], ledger: Path | None) -> None:
    """Add results of a ledger to the records under way."""
    files = list(filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))
    if not files:
        return
    where = Path("") if ledger is None else Path(ledger).resolve()
    # A ledger elsewhere is named without the folders of this machine.
    inside = where.is_relative_to(paths.ROOT)
    where = str(where.relative_to(paths.ROOT)) if inside else where.name
    lines = [
        {"ledger": where, "ok": one.ok}
        | {name: getattr(one, name) for name in ("key", "model", "purpose", "prompt", *TOKENS)}
        for one in results
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for file in files:
        with open(file, "ab", buffering=0) as stream:  # one write: others may write as well
            stream.write(data)


@contextmanager
def record() -> Iterator[list[dict[str, Any]]]:
    """Yield a list that has, when the block ends, what was asked in it and in processes it started.

    One dict for each model, purpose, prompt and ledger: `requests` (equal ones once,
    whether they were asked now or the ledger had the answer), `failed` (without a value), their
    tokens as the endpoint reported them, and `cost_usd` by the prices of `prices`, a date. What is
    unknown is None.
    """
    before, found = os.environ.get(VARIABLE), []
    with tempfile.TemporaryDirectory(prefix="ragkit-used-") as folder:
        path = Path(folder) / "used.jsonl"
        path.touch()
        os.environ[VARIABLE] = os.pathsep.join(filter(None, (before, str(path))))
        try:
            yield found
        finally:
            os.environ.pop(VARIABLE)
            if before:
                os.environ[VARIABLE] = before
            found += _summed(map(json.loads, path.read_text("utf-8").splitlines()))


def _summed(lines: Iterable[dict]) -> list[dict[str, Any]]:
    groups: dict[tuple, dict[str, dict]] = {}
    for line in lines:
        own = groups.setdefault(tuple(line[name] for name in _NAMES), {})
        if not own.get(line["key"], {}).get("ok"):
            own[line["key"]] = line
    prices, rows = load_prices(), []
    for names, own in sorted(groups.items()):
        lines = own.values()
        row = {**dict(zip(_NAMES, names, strict=True)), "requests": len(own)}
        row["failed"] = sum(not line["ok"] for line in lines)
        for name in TOKENS:  # a request that nobody answered has used none
            row[name] = add(one[name] for one in lines if one["ok"] or one[name] is not None)
        row["cost_usd"] = prices.cost(row["model"], *(row[name] for name in TOKENS))
        rows.append(row | {"prices": prices.date})
    return rows
