"""What a company would cost: the pipeline runs on stand-ins of the answers that are not there yet."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ragkit.synth import stages
from ragkit.synth.author import AuthorOptions
from ragkit.synth.company.plan import FORMS, PROJECT, Settings
from ragkit.synth.stages import Task
from ragkit.synth.streams import Stream

READ = 4  # documents that a question on a project is expected to read besides those shown
TYPICAL = {"project_related": 4, "completeness": 5}  # gold documents of a question
# Words of an answer and number of its facts, as in the benchmark's own questions.
SAID = {
    "basic": (26, 3),
    "semantic": (37, 4),
    "intra_document_reasoning": (29, 3),
    "project_related": (190, 12),
    "constrained": (78, 10),
    "conflicting_info": (38, 6),
    "completeness": (46, 10),
    "miscellaneous": (16, 2),
    "high_level": (22, 3),
    "info_not_found": (40, 1),
}


class Guess(stages.Guess):
    """Stand-ins for the answers of a company's stages.

    Parameters
    ----------
    name, prompts, options, parameters
        See `ragkit.synth.stages.Guess`.
    settings : Settings
    page : str
    """

    def __init__(
        self, name: str, prompts: Path, options: AuthorOptions, parameters, settings, page
    ):
        own = {stage: partial(stand_in, self) for stage, stand_in in STAND_INS.items()}
        super().__init__(name, prompts, options, own, parameters)
        self.settings: Settings = settings
        self.page = page

    def text(self, item: str, characters: int) -> str:
        """Return so many characters of the page, from a place that depends on the item."""
        start = Stream("text", item).below(len(self.page))
        words = self.page * (2 + characters // len(self.page))
        return f"{item} {words[start : start + characters]}"[:characters]


def _company(guess: Guess, task: Task) -> dict:
    initiatives = [
        {"name": f"Initiative {n}", "sponsor": "Person 0"}
        | {key: guess.text(f"{key} {n}", 120) for key in ("why", "aim", "measure")}
        for n in range(5)
    ]
    sources = [
        {"source": s, "documents": n, "folders": [
            {"path": f"{s}/{part}", "holds": guess.text(f"{s} {part}", 90)}
            for part in ("one", "two", "three", "four", "five", "six")
        ]}
        for s, n in guess.settings.mix.items()
    ]  # fmt: skip
    overview = guess.text("overview", min(3000, len(guess.page)))
    return {"name": "X", "overview": overview, "initiatives": initiatives, "sources": sources}


def _people(guess: Guess, task: Task) -> dict:
    rows = [
        {
            "name": f"Person {n}",
            "role": "role of some kind",
            "team": "team",
            "note": guess.text(f"{n}", 60),
        }
        for n in range(task.values["people"])
    ]
    return {"people": [row | {"manager": "Person 0" * (n > 0)} for n, row in enumerate(rows)]}


def _projects(guess: Guess, task: Task) -> dict:
    number, total = task.values["projects"], task.values["documents"]
    row = {"initiative": "Initiative 0", "people": [f"Person {n}" for n in range(6)]}
    row["documents"] = max(1, total // number)
    return {
        "projects": [
            row | {"name": f"project-{n}", "description": guess.text(f"project {n}", 500)}
            for n in range(number)
        ]
    }


def _clusters(guess: Guess, task: Task) -> dict:
    return {
        "clusters": [
            {"name": f"cluster-{n}", "question": guess.text(f"cluster {n}", 100)}
            | {"answer": guess.text(f"answer {n}", 300), "documents": 5}
            for n in range(task.values["clusters"])
        ]
    }


def _topics(guess: Guess, task: Task) -> dict:
    rows = []
    for kind in ("volume", "misc"):
        left = task.values[kind]
        while left:
            size = min(left, PROJECT)
            name = f"{kind}-{len(rows)}"
            about = {"source": "several", "description": guess.text(name, 250), "kind": kind}
            rows.append(about | {"name": name, "documents": size})
            left -= size
    return {"topics": rows}


def _manifest(guess: Guess, task: Task) -> dict:
    name, stream, rows = task.item.partition(" ")[2], Stream("mix", task.item), []
    for n in range(1, task.values["n"] + 1):
        source = stream.weighted(list(FORMS), list(guess.settings.mix.values()))
        row = {"key": f"{name}-{n:02d}", "source": source, "title": guess.text(f"{name} {n}", 60)}
        row |= {"path": f"{source}/{stream.pick(('one', 'two'))}/{name}-{n}-some-slug.json"}
        row |= {"people": [f"Person {k}" for k in range(4)], "date": "2025-06-30"}
        row |= {"summary": guess.text(f"summary {n}", 300), "carries": "a part of the answer"}
        form = FORMS[source]
        values = {k: 3 if k in form.get("whole", ()) else "some value" for k in form["metadata"]}
        first = [f"{name}-01"] if n > 2 and task.given["kind"] == "project" else []
        rows.append(row | {"reads": first, "metadata": values})
    return {"documents": rows}


def _near_duplicate(guess: Guess, task: Task) -> dict:
    entry = json.loads(task.values["entry"])
    path = f"{entry['source']}/one/{task.given}-again.json"
    changed = [{"what": "what it is about", "before": "so it was", "after": "so it is"}] * 2
    text = guess.text(task.item, FORMS[entry["source"]]["length"])
    kept = {k: entry[k] for k in ("source", "title", "date", "people", "metadata")}
    return kept | {"path": path, "content": text, "changed": changed}


def _question(guess: Guess, task: Task) -> dict:
    draft = task.given
    if draft.flow["sample"] == "project" and not draft.seen:
        return {"read": [key for key in draft.listed if key not in draft.shown][:READ]}
    low, high = draft.flow["gold"]
    gold = draft.read[: max(low, min(high, TYPICAL.get(draft.kind, 1)))]
    words, facts = SAID[draft.kind]
    data = {"question": guess.text(task.item, 180), "answer": guess.text("answer", 6 * words)}
    barred = ["The answer must not say what another document says."] * ("negative" in draft.flow)
    return data | {"facts": [guess.text(f"{n}", 90) for n in range(facts)] + barred, "gold": gold}


def _pool(guess: Guess, task: Task) -> dict:
    gold = task.given[1]
    rows = [{"key": k, "label": "required" if k in gold else "invalid"} for k in task.given[0]]
    return {"reason": guess.text(task.item, 250), "documents": rows}


STAND_INS: dict[str, Callable[[Guess, Task], dict]] = {
    "company": _company,
    "people": _people,
    "projects": _projects,
    "clusters": _clusters,
    "topics": _topics,
    "manifest": _manifest,
    "document": lambda guess, task: {
        "content": guess.text(task.item, FORMS[task.given["source"]]["length"])
    },
    "misfile": lambda guess, task: {"path": task.values["folders"].split("\n")[0]},
    "near_duplicate": _near_duplicate,
    "question": _question,
    "validate": lambda guess, task: {"reason": guess.text(task.item, 250), "ok": True},
    "minimal": lambda guess, task: {"needed": list(task.given.data["gold"])},
    "pool": _pool,
}
