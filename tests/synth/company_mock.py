"""A model that knows one small company: it answers the stages of the pipeline by their items."""

from __future__ import annotations

import json
import re
from collections import Counter

from ragkit.files import read_jsonl, write_jsonl
from ragkit.llm import Ledger, import_results
from ragkit.synth.company.plan import FORMS
from tests.llm.server import Reply, chat

PAGE = (
    "# Tern & Sons\n\nTern & Sons mends pianos in Lowmarsh with 14 people. It was founded in 1988, "
    "never took money from outside, and earns by the hour and by the ton of iron. "
) * 4
PEOPLE = ["Ada Tern", "Bo Quill", "Cleo Marsh", "Dag Rowan", "Eva Stone", "Finn Reed"]
SOURCES = list(FORMS)
TEXTS = {"project": 12, "cluster": 4, "volume": 22, "misc": 3}  # documents of a block
SIZE = {
    "documents": 60,
    "questions": 30,
    "metadata_questions": 6,
    "seed": 5,
    "author": "openai:toy",
}


def item_of(body: dict) -> str:
    """Return what the last line of the form `Item: ...` of the request says."""
    prompt = next(m["content"] for m in body["messages"] if m["role"] == "user")
    return re.findall(r"^Item: (.+)$", prompt, re.M)[-1]


def words(item: str, characters: int) -> str:
    """Return so many characters that say something else for every item."""
    said = []
    while sum(map(len, said)) + len(said) < characters:
        said.append(f"{PEOPLE[len(said) % 6].split()[0]} noted {len(said)} on {item}, and")
    return " ".join(said)[:characters]


class Mock:
    """Answers by item; `changes` are answers of a test's own, or functions of the answer.

    Attributes
    ----------
    asked : Counter of items
    prompts : dict of item to list of str
    """

    def __init__(self, changes: dict | None = None):
        self.changes = changes or {}
        self.asked: Counter[str] = Counter()
        self.prompts: dict[str, list[str]] = {}

    def __call__(self, body, nth=0, digest=""):
        return Reply(chat(json.dumps(self.answer(body))))

    def answer(self, body: dict) -> dict:
        item = item_of(body)
        prompt = next(m["content"] for m in body["messages"] if m["role"] == "user")
        self.asked[item] += 1
        self.prompts.setdefault(item, []).append(prompt)
        change = self.changes.get(item)
        if isinstance(change, dict):
            return change
        data = self.play(item, prompt)
        return change(data, self.asked[item]) if change else data

    def play(self, item: str, prompt: str) -> dict:
        stage, _, name = item.partition(" ")
        stage = {"answer": "answer_"}.get(stage, stage.replace("-", "_"))
        return getattr(self, stage)(name, prompt)

    def company(self, name, prompt):
        folders = {
            s: [
                {"path": f"{s}{part}", "holds": f"What {s} holds."}
                for part in ("", "/shop", "/yard")
            ]
            for s in SOURCES
        }
        efforts = [
            {"name": name, "why": "Iron is dear.", "aim": "Less of it.", "measure": "Tons."}
            | {"sponsor": "Ada Tern"}
            for name in ("Lighter frames", "Quiet rooms")
        ]
        sources = [{"source": s, "documents": 7, "folders": folders[s]} for s in SOURCES]
        return {"name": "Tern", "overview": PAGE, "initiatives": efforts, "sources": sources}

    def people(self, name, prompt):
        rows = [
            {
                "name": n,
                "role": "tuner",
                "team": "shop",
                "manager": "Ada Tern" * (i > 0),
                "note": "",
            }
            for i, n in enumerate(PEOPLE)
        ]
        return {"people": rows}

    def projects(self, name, prompt):
        row = {"description": words("the project", 400), "people": PEOPLE[:3]}
        return {
            "projects": [
                row | {"name": n, "initiative": i, "documents": TEXTS["project"]}
                for n, i in (("anvil", "Lighter frames"), ("felt", "Quiet rooms"))
            ]
        }

    def clusters(self, name, prompt):
        return {
            "clusters": [
                {"name": n, "question": f"Who has {n} keys, and how many?", "documents": 4}
                | {"answer": "; ".join(f"{p} has {n * 11 + 100}" for n, p in enumerate(PEOPLE[:4]))}
                for n in ("ivory", "ebony")
            ]
        }

    def topics(self, name, prompt):
        return {
            "topics": [
                {"name": "tuning", "source": "several", "description": "Tuning.", "kind": "volume"}
                | {"documents": TEXTS["volume"]},
                {"name": "cats", "source": "several", "description": "Cats.", "kind": "misc"}
                | {"documents": TEXTS["misc"]},
            ]
        }

    def manifest(self, name, prompt):
        kinds = {"anvil": "project", "felt": "project", "ivory": "cluster", "ebony": "cluster"}
        kind = kinds.get(name, {"tuning": "volume", "cats": "misc"}.get(name))
        return {"documents": [self.entry(name, kind, n) for n in range(1, TEXTS[kind] + 1)]}

    def entry(self, name, kind, n):
        source = SOURCES[(n + len(name)) % 9]
        form = FORMS[source]
        metadata = {k: 7 if k in form.get("whole", ()) else f"{k} {n}" for k in form["metadata"]}
        row = {"key": f"{name}-{n:02d}", "source": source, "title": f"{name.title()} {n}"}
        row |= {"path": f"{source}/{('shop', 'yard')[n % 2]}/{name}-{n}.json", "metadata": metadata}
        row |= {
            "date": f"2025-03-{n:02d}",
            "people": PEOPLE[:2],
            "summary": words(f"{name} {n}", 250),
        }
        row["reads"] = [f"{name}-01"] if kind == "project" and n > 6 else []
        return row | (
            {"carries": f"{PEOPLE[n - 1]} has {n * 11 + 89}"} if kind == "cluster" else {}
        )

    def document(self, key, prompt):
        source = re.search(r'"source": "(\w+)"', prompt)[1]
        carried = re.search(r"states its part \((.+?)\) in passing", prompt)
        said = f"{carried[1]} keys, by the way. " if carried else ""
        return {"content": said + words(key, FORMS[source]["length"])}

    def misfile(self, key, prompt):
        folder = re.search(r"^Its path: (.+)/", prompt, re.M)[1]
        source = folder.split("/")[0]
        return {"path": f"{source}/{'yard' if folder.endswith('shop') else 'shop'}"}

    def near_duplicate(self, key, prompt):
        entry = json.loads(
            re.search(rf"^Item: near-duplicate {key}\n(\{{.+?^\}})", prompt, re.M | re.S)[1]
        )
        text = prompt.partition("The original:\n")[2]
        head = {k: entry[k] for k in ("source", "title", "people", "metadata")}
        head |= {"path": f"{entry['source']}/yard/{key}-later.json", "date": "2025-09-01"}
        changed = [{"what": "the count", "before": "noted 1 on", "after": "noted 77 on"}]
        return head | {"content": text.replace("noted 1 on", "noted 77 on"), "changed": changed}

    def question(self, name, prompt):
        kind = name.removesuffix(" again").rpartition("-")[0]
        keys = re.findall(r"^\[([a-z0-9-]+)\] \w+/", prompt, re.M)
        listed = re.findall(r"^- ([a-z0-9-]+) \(", prompt, re.M)
        if kind == "project_related" and name.endswith("1") and len(keys) == 4:
            return {"read": [key for key in listed if key not in keys][:2]}
        gold = {"project_related": keys[:4], "completeness": keys, "conflicting_info": keys[:2]}
        own = [] if kind in ("high_level", "info_not_found") else gold.get(kind, keys[:1])
        facts = [f"{words(name, 80)}.", f"{words(kind, 60)}."]
        if kind in ("constrained", "conflicting_info"):
            facts.append("The answer must not name another key.")
        return {"question": f"Of {name}: {words(name, 150)}?", "answer": words(name, 200)} | {
            "facts": facts,
            "gold": own,
        }

    def validate(self, name, prompt):
        return {"reason": words(name, 200), "ok": True}

    def minimal(self, name, prompt):
        keys = re.findall(r"^\[([a-z0-9-]+)\] \w+/", prompt, re.M)
        return {"needed": keys[:3]}

    def pool(self, name, prompt):
        """Call documents required that are shown whole: they are gold."""
        shown = re.split(r"^(?=\[[a-z0-9-]+\] \w+/)", prompt.partition("Question:")[2], flags=re.M)[
            1:
        ]
        rows = [
            {
                "key": text[1 : text.index("]")],
                "label": "invalid" if "\n..." in text else "required",
            }
            for text in shown
        ]
        return {"reason": words(name, 220), "documents": rows}

    def answer_(self, name, prompt):
        return {"answer": words(f"new {name}", 150), "facts": [words(f"new {name}", 60)]}


class Dying:
    """A mock whose key is refused after so many answers."""

    def __init__(self, mock: Mock, lives: int):
        self.mock, self.lives = mock, lives

    def __call__(self, body, nth=0, digest=""):
        self.lives -= 1
        if self.lives < 0:
            return Reply('{"error": {"message": "no such key"}}', 401, paid=False)
        return self.mock(body)


def results(model, lines: list[dict]) -> list[dict]:
    """Return the results of the lines of a batch, as an endpoint gives them back."""
    bodies = [json.loads(chat(json.dumps(model.answer(line["body"])))) for line in lines]
    return [
        {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}}
        for line, body in zip(lines, bodies, strict=True)
    ]


def imported(ledger, found: list[dict]):
    """Write results to a file beside a ledger, and import it."""
    back = write_jsonl(ledger.with_suffix(".results.jsonl"), found)
    with Ledger(ledger) as book:
        return import_results(book, back)


def rounds(mock, run, batch, ledger, most: int = 60) -> int:
    """Run a command until it writes no batch, answering every batch; return the rounds."""
    for turn in range(most):
        batch.unlink(missing_ok=True)
        done = run()
        assert done.exit_code == 0, (done.output, done.exception)
        if not batch.exists():
            return turn
        assert "requests written to" in done.output
        imported(ledger, results(mock, read_jsonl(batch)))
    raise AssertionError(f"no end after {most} rounds")
