"""Requests and answers as files in the format of OpenAI's batch API, which costs half as much."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.files import read_jsonl, write_text
from ragkit.llm.client import Client
from ragkit.llm.exchange import Request, answer_fields, body, canonical, check_envelope
from ragkit.llm.ledger import Exchange, Ledger


def write_batch(client: Client, requests: Iterable[Request | str], path: str | Path) -> int:
    """Write the requests that the client's ledger lacks to `path`; return their number.

    The ledger keeps them until `import_results` takes the answers. Invalid answers are repaired by
    the next batch.
    """
    missing = client.missing(requests)
    name = client.model.partition(":")[2]
    call = {"method": "POST", "url": "/v1/chat/completions"}
    lines = [call | {"custom_id": job.key, "body": body(name, job.plain)} for job in missing]
    write_text(path, "".join(f"{canonical(line)}\n" for line in lines))
    client.ledger.expect(
        {
            "plain": job.plain,
            "repair_of": job.repair_of,
            "purpose": job.request.purpose,
            "prompt": job.request.prompt,
        }
        for job in missing
    )
    return len(missing)


def import_results(ledger: Ledger, path: str | Path) -> tuple[int, int]:
    """Record the answers in a file of batch results; return how many are answers and failures.

    Raises
    ------
    DataError
        If a line is not a batch result, or its request was not written from this ledger.
    """
    exchanges = []
    for number, row in enumerate(read_jsonl(path, ("custom_id", "response")), 1):
        pending = ledger.expected(row["custom_id"])
        if pending is None:
            raise DataError(
                f"{path}: result {number}: the ledger {ledger.path} expects no {row['custom_id']!r}",
                "name the ledger that the batch was written from",
            )
        exchanges.append(_exchange(row, **pending))
    for exchange in exchanges:
        ledger.put(exchange)
    failed = sum(exchange.state == "failed" for exchange in exchanges)
    return len(exchanges) - failed, failed


def _exchange(row: dict[str, Any], plain: dict[str, Any], **labels: Any) -> Exchange:
    response = row["response"] if isinstance(row["response"], dict) else {}
    status, text = response.get("status_code"), canonical(response.get("body"))
    if status == 200 and check_envelope(text) is None:
        options = {name: plain[name] for name in ("schema", "tools", "parameters", "repeat")}
        found = answer_fields(Request(plain["messages"], **options), text)
    else:
        said = canonical(row.get("error") or response.get("body"))[:300]
        kind = "rejected" if status == 400 else "server_error"
        found = {"state": "failed", "kind": kind, "reason": f"batch, status {status}: {said}"}
    return Exchange(
        key=row["custom_id"],
        model=plain["model"],
        request=canonical(plain),
        asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        **labels,
        **found,
    )
