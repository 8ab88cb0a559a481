"""The documents of a company: written one wave after another, then misfiled and half repeated.

EnterpriseRAG-Bench, sections 4.1 and 4.2, appendices B.2 to B.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from ragkit.synth.company.files import Files, fragment
from ragkit.synth.company.plan import AGAIN, FORMS, METADATA, Plan, fault_of, unique
from ragkit.synth.noise import SHARES, Tree
from ragkit.synth.stages import Pipeline, Task
from ragkit.synth.streams import Stream

READS = 3  # times that a document may ask for the texts of others
SHORTEST = 200  # characters
SHOWN = 12_000  # characters of another document in a prompt
# What a prompt shows of an entry.
OWN = "key source path title date people summary metadata".split()


class Writer(Pipeline):
    """Write the documents of a plan: `texts` by key.

    An entry is asked as soon as all that it reads is written: entries of a project read what their
    manifest says, and what they ask for; those of a cluster, all earlier ones; the others little.
    """

    def __init__(self, plan: Plan, files: Files):
        super().__init__(files)
        self.plan, self.texts = plan, {}
        self._needs = {key: self._reads(entry) for key, entry in plan.entries.items()}
        self._asked: dict[str, int] = {}  # times that an entry has asked for texts
        self._held: dict[str, str] = {}  # keys by text

    def _reads(self, entry: dict) -> list[str]:
        return self._above(entry) if entry["kind"] == "cluster" else list(entry["reads"])

    def _above(self, entry: dict) -> list[str]:
        """Return what stands above an entry in its manifest."""
        keys = [other["key"] for other in self.plan.manifests[entry["block"]]]
        return keys[: keys.index(entry["key"])]

    def write(self) -> Writer:
        """Write everything; `BatchWritten` if answers have to come from a batch."""
        waiting, settled = dict.fromkeys(self.plan.entries, True), set()
        while ready := [k for k in waiting if waiting[k] and settled.issuperset(self._needs[k])]:
            waiting |= dict.fromkeys(ready, False)
            for key, data in self.ask("document", ready, self._task, self._fault):
                if read := data.get("read"):
                    waiting[key] = True
                    self._asked[key] = self._asked.get(key, 0) + 1
                    self._needs[key] += [k for k in read if k not in self._needs[key]]
                else:
                    self.texts[key] = data["content"].strip()
            settled = {*self.texts, *(one.item.partition(" ")[2] for one in self.lost)}
        self.author.flush()
        return self

    def _task(self, key: str) -> Task:
        entry, plan = self.plan.entries[key], self.plan
        block, kind, form = plan.blocks[entry["block"]], entry["kind"], FORMS[entry["source"]]
        siblings = [other for other in plan.manifests[entry["block"]] if other is not entry]
        read = [k for k in self._needs[key] if k in self.texts]
        values = {
            "rules": fragment("rules", form=form["form"], length=form["length"]),
            "entry": shown(entry),
            "company": plan.overview,
            "manifest": "\n".join(map(_line if kind == "project" else _path, siblings)) or "none",
            "texts": "\n\n".join(f"[{k}]\n{self.texts[k][:SHOWN]}" for k in read) or "none",
        }
        if kind != "misc":
            values["agents"] = plan.agents(entry["path"])
        if kind == "project":
            times = READS - self._asked.get(key, 0)
            left = f"You may do so {times} more times." if times else "You have read enough now."
            values |= {"left": left, "name": block["name"], "description": block["description"]}
        elif kind == "cluster":
            values |= {"question": block["question"], "carries": entry["carries"]}
        return Task(f"document {key}", values, entry, f"document-{kind}")

    def _fault(self, task: Task, data: dict) -> str:
        """Return what is wrong with a document or with what it asks to read."""
        entry, read = task.given, data.get("read")
        if bool(read) == bool(data.get("content")):
            return "either content or read"
        if read:
            if entry["kind"] != "project":
                return "this document has nothing to read: write it"
            if lost := [key for key in read if key not in self._above(entry)]:
                return f"{lost[0]!r} does not stand above this entry in the manifest"
            new = [key for key in read if key not in self._needs[entry["key"]]]
            return "" if new and self._asked.get(entry["key"], 0) < READS else "write it now"
        text = data["content"].strip()
        if fault := unfit(text):
            return fault
        if (held := self._held.setdefault(text, entry["key"])) != entry["key"]:
            return f"this is the text of {held}"
        numbers = re.findall(r"\d[\d.,:]*\d", entry.get("carries", ""))
        if numbers and not any(number in text for number in numbers):
            return f"it leaves out its part of the answer: {entry['carries']}"
        return ""


def unfit(text: str) -> str:
    """Return why a text is no document, or an empty string."""
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):
        return "the content has control characters"
    if len(text) < SHORTEST:
        return f"the content has {len(text)} characters, at least {SHORTEST} are wanted"
    return ""


FORMS_LISTED = "\n".join(
    f"{source}: {form['form']} About {form['length']} characters." for source, form in FORMS.items()
)


def shown(entry: Mapping) -> str:
    """Return an entry for a prompt."""
    return json.dumps({name: entry[name] for name in OWN}, ensure_ascii=False, indent=1)


def _line(entry: dict) -> str:
    people = ", ".join(entry["people"])
    return f"- {entry['key']} ({entry['date']}, {entry['path']}) {entry['title']}; {people}; {entry['summary']}"


def _path(entry: dict) -> str:
    carries = f": {entry['carries']}" if entry.get("carries") else ""
    return f"- {entry['path']}{carries}"


# Noise


def walk(entries: Mapping[str, dict], stream: Stream, count: int, skip=frozenset()) -> list[str]:
    """Return keys found by walks over the tree of folders, so that full ones are not preferred."""
    folders: dict[str, dict[str, list[str]]] = {}
    for key, entry in entries.items():
        own = folders.setdefault(entry["source"], {})
        own.setdefault(entry["path"].rpartition("/")[0], []).append(key)
    trees = {source: Tree(own) for source, own in folders.items() if len(own) > 1}
    found: list[str] = []
    for _ in range(100 * count if trees else 0):
        if len(found) == count:
            break
        tree = trees[stream.pick(list(trees))]
        key = stream.pick(tree.members[tree.folder(stream)])
        if key not in found and key not in skip:
            found.append(key)
    return found


class Noise(Pipeline):
    """What becomes of the texts: misfiled by the model, shuffled at random, repeated with changes.

    By key, `moves` has "plausible" or "random" and the new path, and `copies` the entries of
    near-duplicates, with `content`, `changed` and `original`.
    """

    def __init__(self, plan: Plan, files: Files, texts: Mapping[str, str]):
        super().__init__(files)
        self.plan, self.texts = plan, texts
        self.entries = {key: entry for key, entry in plan.entries.items() if key in texts}
        self.moves: dict[str, tuple[str, str]] = {}
        self.copies: dict[str, dict] = {}
        self._taken = {entry["path"] for entry in self.entries.values()}

    def make(self) -> Noise:
        """Ask for all that is missing, in one batch."""
        count = round(SHARES["plausible"] * len(self.entries))
        keys = walk(self.entries, self._stream("misfile"), count)
        moved = list(self.ask("misfile", keys, self._misfiled, self._no_place))
        copied = list(self._repeat())
        self.author.flush()
        known = {"block": "near-duplicates", "kind": "near-duplicate"}
        for key, data in copied:
            own = {"original": key, "key": f"{key}{AGAIN}", "summary": self.entries[key]["summary"]}
            self.copies[own["key"]] = data | known | own
        for key, data in moved:
            self._move(key, "plausible", data["path"])
        self._shuffle(set(keys))
        return self

    def _stream(self, name: str) -> Stream:
        return Stream(self.plan.settings.seed, "company", name)

    def _folders(self, source: str) -> list[str]:
        own = {e["path"].rpartition("/")[0] for e in self.entries.values() if e["source"] == source}
        return sorted(own)

    def _move(self, key: str, kind: str, folder: str) -> None:
        """Put a document into a folder, where it has a path of its own."""
        path = f"{folder.rstrip('/')}/{self.entries[key]['path'].rpartition('/')[2]}"
        self.moves[key] = (kind, unique(path, self._taken))

    def _misfiled(self, key: str) -> Task:
        entry, document = self.entries[key], self.texts[key][:SHOWN]
        values = {"folders": "\n".join(self._folders(entry["source"]))}
        values |= {"path": entry["path"], "document": document}
        return Task(f"misfile {key}", values, key)

    def _no_place(self, task: Task, data: dict) -> str:
        entry, folder = self.entries[task.given], data["path"].rstrip("/")
        if folder not in self._folders(entry["source"]):
            return f"there is no folder {folder!r} in {entry['source']}"
        return "it lies there already" if entry["path"].rpartition("/")[0] == folder else ""

    def _shuffle(self, taken: set[str]) -> None:
        stream = self._stream("shuffle")
        for key in walk(self.entries, stream, round(SHARES["random"] * len(self.entries)), taken):
            here = self.entries[key]["path"].rpartition("/")[0]
            others = [f for f in self._folders(self.entries[key]["source"]) if f != here]
            self._move(key, "random", stream.pick(others))

    def _repeat(self) -> Iterator[tuple[str, dict]]:
        skip = {key for key, e in self.entries.items() if e["kind"] in ("cluster", "misc")}
        count = self.plan.settings.duplicates
        keys = walk(self.entries, self._stream("near-duplicates"), count, skip)
        folders = [f for source in FORMS for f in self._folders(source)]
        values = {
            "forms": FORMS_LISTED,
            "metadata": f"metadata has exactly these keys by source:\n{METADATA}",
            "agents": "\n".join(f"{f}: {self._holds(f)}" for f in folders),
        }

        def task(key: str) -> Task:
            own = {"entry": shown(self.entries[key]), "document": self.texts[key]}
            return Task(f"near-duplicate {key}", values | own, key)

        return self.ask("near_duplicate", keys, task, self._no_copy)

    def _holds(self, folder: str) -> str:
        return self.plan.agents(f"{folder}/").rpartition("\n")[2].partition(": ")[2]

    def _no_copy(self, task: Task, data: dict) -> str:
        entry, text = self.entries[task.given], data["content"].strip()
        before, after = squeezed(self.texts[task.given]), squeezed(text)
        if fault := fault_of(data) or unfit(text):
            return fault
        if data["path"] in self._taken:
            return f"the path {data['path']!r} is taken"
        if data["date"] < entry["date"]:
            return f"it is dated before the original, {entry['date']}"
        for one in data["changed"]:
            if squeezed(one["before"]) not in before:
                return f"the original does not say {one['before']!r}"
            if squeezed(one["after"]) not in after:
                return f"the document does not say {one['after']!r}"
            if squeezed(one["before"]) == squeezed(one["after"]):
                return f"nothing has changed in {one['before']!r}"
        self._taken.add(data["path"])
        return ""


def squeezed(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())
