"""The ten question flows: asked by a model, read again by it, asked once more where they fail.

EnterpriseRAG-Bench, section 4.3 and appendix C; what a flow is, `types.toml` says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragkit.judging.goldset import is_anti_hallucination
from ragkit.synth.company.documents import Noise
from ragkit.synth.company.files import Files, fragment
from ragkit.synth.company.plan import Plan
from ragkit.synth.company.search import Library, content
from ragkit.synth.layout import printed
from ragkit.synth.stages import Pipeline, Task
from ragkit.synth.streams import Stream

FLOWS = tomllib.loads(Path(__file__).with_name("types.toml").read_text("utf-8"))
READS, AT_ONCE = 3, 6  # times that a flow may ask for texts, and texts each time
NEIGHBOURS, AROUND = 5, 15  # documents of a neighbourhood that are shown and listed
LONG = 3000  # characters of a document for a question within it
STARTED = 4  # documents of a project that are shown at first
CUT = 4000  # characters of a near document
FOCUS = "mission, products, customers, technology, business model, competitors, history".split(", ")


@dataclass(frozen=True)
class Draft:
    """A question on its way; documents are named by their keys."""

    kind: str  # its type
    number: int  # from 1 within its type
    shown: tuple[str, ...] = ()  # documents in the first prompt
    listed: tuple[str, ...] = ()  # documents that may be read
    about: str = ""  # what else is shown before the documents
    focus: str = ""
    turn: int = 0  # 1 if it is asked again
    refused: str = ""  # why the first one failed
    seen: tuple[str, ...] = ()  # documents that were read
    data: dict = field(default_factory=dict)  # question, answer, facts and gold
    notes: dict = field(default_factory=dict)  # what the checks said

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number:02d}{' again' * self.turn}"

    @property
    def flow(self) -> dict:
        return FLOWS[self.kind]

    @property
    def read(self) -> list[str]:
        """Return all documents that were seen, those of the answer included."""
        return list(dict.fromkeys([*self.shown, *self.seen, *self.data.get("gold", ())]))

    def asked(self) -> dict[str, str]:
        """Return question and answer for the prompt of a check."""
        return {name: self.data[name] for name in ("question", "answer")}


class Asker(Pipeline):
    """Ask the questions of a company."""

    def __init__(self, plan: Plan, files: Files, noise: Noise, library: Library):
        super().__init__(files)
        self.plan, self.noise, self.library = plan, noise, library
        self._held: dict[str, str] = {}  # names by question
        self._reads: dict[str, int] = {}

    def make(self) -> list[Draft]:
        """Return the questions that pass their check; `lost` has the others."""
        first = list(self._validated(self._asked(list(self.begin()))))
        failed = [d for d in first if d.refused]
        again = self._validated(self._asked([replace(d, turn=1, data={}) for d in failed]))
        good = []
        for draft in [*(d for d in first if not d.refused), *again]:
            if draft.refused:
                self.refuse("validate", draft.name, draft.refused)
            else:
                good.append(draft)
        return list(self._minimal(good))

    # Where questions begin

    def begin(self) -> Iterator[Draft]:
        """Yield the drafts of all types, as many as the documents allow."""
        seed, used = self.plan.settings.seed, set()
        for kind, flow in FLOWS.items():
            begun = getattr(self, f"_{flow['sample']}s")
            supply = begun(kind, Stream(seed, "questions", kind), used)
            wanted = self.plan.settings.drafts(kind)
            for number, draft in zip(range(1, wanted + 1), supply, strict=False):
                yield replace(draft, number=number)

    def _single(self, kind: str) -> list[str]:
        """Return documents that a question may begin with: of no cluster, and not half repeated."""
        twice = {copy["original"] for copy in self.noise.copies.values()}
        wanted = ("misc",) if kind == "miscellaneous" else ("project", "volume")
        return [
            key
            for key, entry in self.noise.entries.items()
            if entry["kind"] in wanted
            and key not in twice
            and (kind != "intra_document_reasoning" or len(self.noise.texts[key]) >= LONG)
        ]

    def _documents(self, kind: str, stream: Stream, used: set[str]) -> Iterator[Draft]:
        """Yield drafts on single documents; sources come as often as in the paper (Table 10)."""
        keys = stream.sample(self._single(kind), len(self.noise.entries))
        weights = printed("10", "questions_with_source", kind)
        while left := [key for key in keys if key not in used]:
            sources = {self.noise.entries[key]["source"]: key for key in reversed(left)}
            shares = [weights.get(s, 0) + 0.1 for s in sources]
            key = sources[stream.weighted(list(sources), shares)]
            used.add(key)
            yield Draft(kind, 0, (key,))

    def _projects(self, kind: str, stream: Stream, used: set[str]) -> Iterator[Draft]:
        blocks = {}
        for name in stream.sample(list(self.plan.projects), len(self.plan.projects)):
            rows = [e for e in self.plan.manifests[name] if e["key"] in self.noise.entries]
            blocks[name] = stream.sample(rows, len(rows))
        for turn in range(max(map(len, blocks.values()), default=0)):
            for name, rows in blocks.items():
                if turn >= len(rows) or len(rows) < 2:
                    continue
                first, keys = rows[turn], [e["key"] for e in rows]
                near = [e["key"] for e in rows if first["key"] in e["reads"]]
                shown = dict.fromkeys([first["key"], *first["reads"], *near, *keys])
                shown = tuple(key for key in shown if key in keys)[:STARTED]
                about = f"Project {name}: {self.plan.projects[name]['description']}"
                yield Draft(kind, 0, shown, tuple(sorted(keys)), about)

    def _neighbourhoods(self, kind: str, stream: Stream, used: set[str]) -> Iterator[Draft]:
        seen: set[str] = set()  # an explored region is not explored again
        for key in stream.sample(self._single(kind), len(self.noise.entries)):
            if key not in seen:
                near = self.library.near(self.library.text(key), NEIGHBOURS + AROUND, [key])
                seen.update([key, *near[:NEIGHBOURS]])
                yield Draft(kind, 0, (key, *near[:NEIGHBOURS]), tuple(near[NEIGHBOURS:]))

    def _pairs(self, kind: str, stream: Stream, used: set[str]) -> Iterator[Draft]:
        for key, copy in self.noise.copies.items():
            changed = [f"- {c['what']}: {c['before']} -> {c['after']}" for c in copy["changed"]]
            about = "\n".join(["What has changed:", *changed])
            yield Draft(kind, 0, (copy["original"], key), about=about)

    def _clusters(self, kind: str, stream: Stream, used: set[str]) -> Iterator[Draft]:
        for name, cluster in self.plan.clusters.items():
            keys = [e["key"] for e in self.plan.manifests[name] if e["key"] in self.noise.entries]
            if len(keys) > 1:
                yield Draft(kind, 0, tuple(keys), about=f"The question: {cluster['question']}")

    def _overviews(self, kind: str, stream: Stream, used: set[str]) -> Iterator[Draft]:
        matters = [*(one["name"] for one in self.plan.company["initiatives"]), *FOCUS]
        for focus in stream.sample(matters, len(matters)):
            yield Draft(kind, 0, about=self.plan.overview, focus=focus)

    # Asking

    def _asked(self, drafts: list[Draft]) -> list[Draft]:
        """Return the drafts with their questions; those that a batch has to answer are left out."""
        done: dict[str, Draft] = {}
        waiting = drafts
        while waiting:
            asked, waiting = waiting, []
            for draft, data in self.ask("question", asked, self._task, self._fault):
                if read := data.get("read"):
                    self._reads[draft.name] = self._reads.get(draft.name, 0) + 1
                    new = dict.fromkeys(key for key in read if key not in draft.read)
                    waiting.append(replace(draft, seen=(*draft.seen, *new)))
                    continue
                data = data | {"gold": list(dict.fromkeys(data["gold"]))}
                if "answer" in draft.flow:
                    data |= {"answer": draft.flow["answer"], "facts": [draft.flow["fact"]]}
                done[draft.name] = replace(draft, seen=tuple(data["seen"]), data=data)
        return [done[draft.name] for draft in drafts if draft.name in done]

    def _task(self, draft: Draft) -> Task:
        library, parts = self.library, [draft.about] if draft.about else []
        if draft.listed:
            parts.append(f"Documents that can be read:\n{self._list(draft)}")
        if keys := [*draft.shown, *draft.seen]:
            parts.append(f"Documents:\n\n{library.texts(keys)}")
        left = READS - self._reads.get(draft.name, 0)
        said = f"You may do so {left} more times." if left else "You have read enough now."
        values = {
            "ask": draft.flow["ask"].replace("{focus}", draft.focus),
            "tool": fragment("tool", left=said) if draft.listed else "",
            "refused": f"An earlier one failed: {draft.refused}" if draft.refused else "",
            "material": "\n\n".join(parts),
        }
        return Task(f"question {draft.name}", values, draft, note={"seen": list(draft.seen)})

    def _list(self, draft: Draft) -> str:
        line, known = "- {key} ({path}) {title}", self.library.rows
        if draft.flow["sample"] == "project":
            line, known = "- {key} ({date}, {path}) {title}; {summary}", self.noise.entries
        return "\n".join(line.format_map(known[key] | {"key": key}) for key in draft.listed)

    def _fault(self, task: Task, data: dict) -> str:
        """Return what is wrong with a question, or with what it asks to read."""
        draft, read = task.given, data.get("read")
        whole = {"question", "answer", "facts", "gold"} <= data.keys()
        if bool(read) == whole:
            return "either question, answer, facts and gold, or read alone"
        known = {*draft.shown, *draft.listed}
        named = read or [*data["gold"], *data.get("seen", ())]
        if lost := [key for key in named if key not in known]:
            return f"{lost[0]!r} is none of the documents above"
        if read:
            if not draft.listed or self._reads.get(draft.name, 0) >= READS:
                return "there is nothing more to read: ask the question"
            new = set(read) - set(draft.read)
            return "" if 0 < len(new) <= AT_ONCE else f"read one to {AT_ONCE} other documents"
        low, high = draft.flow["gold"]
        if not low <= len(set(data["gold"])) <= high:
            return f"{len(set(data['gold']))} gold documents: this type has {low} to {high}"
        if draft.flow.get("negative") and not any(map(is_anti_hallucination, data["facts"])):
            return 'no fact begins with "The answer must not"'
        asked = " ".join(content(data["question"]))
        held = self._held.setdefault(asked, draft.name)
        return "" if held == draft.name else f"{held} asks this already"

    # Checks

    def _validated(self, drafts: Sequence[Draft]) -> Iterator[Draft]:
        """Yield the drafts that were read again, `refused` where they failed."""
        for draft, data in self.ask("validate", drafts, self._reading):
            refused = "" if data["ok"] else data["reason"]
            yield replace(draft, notes={"validated": data["reason"]}, refused=refused)

    def _reading(self, draft: Draft) -> Task:
        library, gold = self.library, draft.data["gold"]
        parts = [draft.about] if draft.flow["sample"] in ("overview", "pair") else []
        if gold:
            parts.append(f"Gold documents:\n\n{library.texts(gold)}")
        if draft.kind == "semantic":
            shared = set(content(draft.data["question"])) & set(content(library.text(gold[0])))
            parts.insert(0, f"Word stems that both have: {', '.join(sorted(shared)) or 'none'}")
        if near := draft.flow["near"]:
            keys = [k for k in draft.shown if k not in gold][:near]
            keys += library.near(draft.data["question"], near - len(keys), [*gold, *keys])
            parts.append(f"Other documents:\n\n{library.texts(keys, CUT)}")
        facts = "\n".join(f"- {fact}" for fact in draft.data["facts"])
        values = draft.asked() | {"facts": facts, "check": draft.flow["check"]}
        return Task(f"validate {draft.name}", values | {"material": "\n\n".join(parts)}, draft)

    def _minimal(self, drafts: list[Draft]) -> Iterator[Draft]:
        """Yield the drafts, those of several documents with no more of them than are needed."""

        def task(draft: Draft) -> Task:
            material = {"material": self.library.texts(draft.read)}
            return Task(f"minimal {draft.name}", draft.asked() | material, draft)

        several = [draft for draft in drafts if draft.flow.get("minimal")]
        asked = self.ask("minimal", several, task, _unknown)
        needed = {draft.name: data["needed"] for draft, data in asked}
        for draft in drafts:
            if not draft.flow.get("minimal"):
                yield draft
            elif draft.name in needed:
                keys = [key for key in draft.read if key in needed[draft.name]]
                if len(keys) >= draft.flow["gold"][0]:
                    yield replace(draft, data=draft.data | {"gold": keys})
                else:
                    why = f"{len(keys)} documents are enough for the answer"
                    self.refuse("minimal", draft.name, why)


def _unknown(task: Task, data: Mapping) -> str:
    lost = [key for key in data["needed"] if key not in task.given.read]
    return f"{lost[0]!r} is none of the documents" if lost else ""
