"""Questions that metadata alone answer; no model is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest

from ragkit.synth.company.plan import FORMS
from ragkit.synth.streams import Stream


def questions(rows: Mapping[str, dict], count: int, seed: int) -> list[dict]:
    """Return questions in the benchmark's layout, as many as there can be up to `count`.

    `rows` are documents as rows of the benchmark, by key. The sources come in turn. What is asked
    for does not stand in title or text, and the title or the name that the question gives belongs
    to one document only.
    """
    rounds = zip_longest(*(_of_source(rows, source, seed) for source in FORMS))
    found = islice((row for one in rounds for row in one if row), count)
    return [{"question_id": f"ext_{number:04d}"} | row for number, row in enumerate(found, 1)]


def _of_source(rows: Mapping[str, dict], source: str, seed: int) -> Iterator[dict]:
    form, stream = FORMS[source], Stream(seed, "metadata", source)
    own = [row for row in rows.values() if row["source_type"] == source]
    names = form.get("names", ())
    titles = Counter(row["title"] for row in rows.values())
    keys = Counter(str(row[name]) for row in own for name in names)
    for row in stream.sample(own, len(own)):
        key = str(next((row[name] for name in names), ""))
        asks = {name: ask for name, ask in form["ask"].items() if _alone(row, name)}
        if titles[row["title"]] > 1:
            asks = {name: ask for name, ask in asks.items() if "{t}" not in ask}
        if not key or keys[key] > 1:
            asks = {name: ask for name, ask in asks.items() if "{k}" not in ask}
        if asks:
            name = stream.pick(list(asks))
            given, text = {"{t}": row["title"], "{k}": key, "{d}": row.get("date", "")}, asks[name]
            for slot, said in given.items():
                text = text.replace(slot, str(said))
            value = str(row[name])
            yield {
                "question_type": "metadata",
                "source_types": [source],
                "question": text,
                "expected_doc_ids": [row["doc_id"]],
                "gold_answer": f"{value}.",
                "answer_facts": [f"{name.replace('_', ' ').capitalize()}: {value}."],
            }


def _alone(row: Mapping, name: str) -> bool:
    """Return whether a value is there, and nowhere in title and text."""
    value = str(row[name])
    return bool(value) and value not in row["title"] and value not in row["content"]
