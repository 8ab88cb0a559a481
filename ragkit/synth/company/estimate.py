"""What depends on the task in the stand-ins of an estimate; the rest is in prompts/stand_ins.json."""

from __future__ import annotations

import json
from collections.abc import Callable

from ragkit.synth.company.plan import FORMS, PROJECT, Settings
from ragkit.synth.stages import Task
from ragkit.synth.streams import Stream

OVERVIEW = 3000  # characters
READ = 4  # documents that a question on a project is expected to read besides those shown
FOLDERS = ("one", "two", "three", "four", "five", "six")


def stand_ins(settings: Settings, page: str) -> dict[str, Callable[[Task], dict]]:
    """Return what the stand-ins of `ragkit.synth.stages.Guess` have beside the declared fields.

    Documents are made of the page's words, so that neighbours are found as among real ones.
    """

    def content(item: str, source: str) -> dict:
        length, start = FORMS[source]["length"], Stream("text", item).below(len(page))
        text = page * (2 + length // len(page))
        return {"content": f"{item} {text[start : start + length]}"[:length]}

    def company(task: Task) -> dict:
        sources = [
            {"source": source, "documents": count}
            | {"folders": [{"path": f"{source}/{part}", "holds": "13 words"} for part in FOLDERS]}
            for source, count in settings.mix.items()
        ]
        return {"overview": page[:OVERVIEW], "sources": sources}

    def manifest(task: Task) -> dict:
        name, stream, rows = task.item.partition(" ")[2], Stream("mix", task.item), []
        shared = {"people": ["4 times", "Person {n}"], "date": "2025-06-30"}
        shared |= {"title": "9 words", "summary": "56 words", "carries": "a part of the answer"}
        for n in range(1, task.values["n"] + 1):
            source = stream.weighted(list(FORMS), list(settings.mix.values()))
            path = f"{source}/{stream.pick(FOLDERS[:2])}/{name}-{n}-some-slug.json"
            whole = FORMS[source].get("whole", ())
            values = {k: 3 if k in whole else "some value" for k in FORMS[source]["metadata"]}
            first = [f"{name}-01"] if n > 2 and task.given["kind"] == "project" else []
            own = {"key": f"{name}-{n:02d}", "source": source, "path": path}
            rows.append(shared | own | {"reads": first, "metadata": values})
        return {"documents": rows}

    def near_duplicate(task: Task) -> dict:
        entry = json.loads(task.values["entry"])
        kept = {k: entry[k] for k in ("source", "title", "date", "people", "metadata")}
        path = f"{entry['source']}/one/{task.given}-again.json"
        return kept | content(task.item, entry["source"]) | {"path": path}

    return STAND_INS | {
        "company": company,
        "manifest": manifest,
        "document": lambda task: content(task.item, task.given["source"]),
        "near_duplicate": near_duplicate,
    }


def _projects(task: Task) -> dict:
    row = {"name": "project-{n}", "initiative": "Initiative 1", "people": ["6 times", "Person {n}"]}
    row |= {"documents": max(1, task.values["documents"] // task.values["projects"])}
    return {"projects": ["projects times", row | {"description": "96 words"}]}


def _topics(task: Task) -> dict:
    rows, about = [], {"source": "several", "description": "46 words"}
    for kind in ("volume", "misc"):
        for done in range(0, task.values[kind], PROJECT):
            size = min(task.values[kind] - done, PROJECT)
            rows.append(about | {"kind": kind, "name": f"{kind}-{len(rows)}", "documents": size})
    return {"topics": rows}


def _question(task: Task) -> dict:
    draft = task.given
    if draft.flow["sample"] == "project" and not draft.seen:
        return {"read": [key for key in draft.listed if key not in draft.shown][:READ]}
    low, high = draft.flow["gold"]
    gold = draft.read[: max(low, min(high, draft.flow.get("typical", 1)))]
    words, facts = draft.flow["said"]
    barred = ["The answer must not say what another document says."] * ("negative" in draft.flow)
    data = {"question": "32 words", "answer": f"{words} words", "gold": gold}
    return data | {"facts": ["14 words"] * facts + barred}


def _pool(task: Task) -> dict:
    keys, gold = task.given
    labels = ({"key": k, "label": "required" if k in gold else "invalid"} for k in keys)
    return {"documents": list(labels)}


STAND_INS: dict[str, Callable[[Task], dict]] = {
    "projects": _projects,
    "topics": _topics,
    "misfile": lambda task: {"path": task.values["folders"].split("\n")[0]},
    "question": _question,
    "minimal": lambda task: {"needed": list(task.given.data["gold"])},
    "pool": _pool,
}
