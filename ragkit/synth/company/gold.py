"""Gold documents by pooling: three retrievers, two judges, a third where they differ.

EnterpriseRAG-Bench, sections 4.4 and 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ragkit.judging.goldset import classify, is_anti_hallucination
from ragkit.synth.company.files import Files
from ragkit.synth.company.questions import Draft
from ragkit.synth.company.search import Library
from ragkit.synth.stages import Pipeline, Task
from ragkit.synth.streams import Stream

POOLED, PASSAGE = 10, 1500  # other documents of a question, and characters of each
JUDGES = 3


class Pool(Pipeline):
    """Judge gold and near documents of questions, and correct the gold sets.

    Two judges read every pool, a third where the first two call other documents required; their
    votes count by the paper's rule (`ragkit.judging.goldset.classify`). A question whose set is
    corrected is left out if its type has a fixed number of gold documents; else it has the new set,
    and an answer that is written anew.

    What the retrievers found is kept in `pools.json` of the plan, since vectors differ in their last
    digits from machine to machine: whoever has the file gets the same prompts. `retrievers` has
    their names.
    """

    def __init__(self, files: Files, library: Library):
        super().__init__(files)
        self.library = library
        self.retrievers: list[str] = []

    def correct(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return the questions that stay; with a batch, those for which all answers are there."""
        judged = [draft for draft in drafts if draft.data["gold"]]
        pools = self._pools(judged)
        votes: dict[str, list[dict[str, str]]] = {draft.name: [] for draft in judged}
        for judge in range(1, JUDGES):
            self._vote(judge, judged, pools, votes)
        self._vote(JUDGES, [d for d in judged if _differ(votes[d.name])], pools, votes)
        settled, changed = [], []
        for draft in drafts:
            if not draft.data["gold"]:
                settled.append(draft)
            elif len(rows := votes[draft.name]) >= 2 and not _differ(rows):
                self._settle(draft, rows, settled, changed)
        kept = {draft.name: draft for draft in (*settled, *self._rewritten(changed))}
        return [kept[draft.name] for draft in drafts if draft.name in kept]

    def _pools(self, drafts: Sequence[Draft]) -> dict[str, list[str]]:
        """Return the other documents of each question, by its name."""
        kept = self.author.read("pools", Task("pools"), self._unknown)
        kept = kept or {"retrievers": [], "found": {}}
        asked = [d.data["question"] for d in drafts if d.data["question"] not in kept["found"]]
        if asked:
            found = self.library.pooled(asked, POOLED)
            kept["found"] = dict(sorted([*kept["found"].items(), *zip(asked, found, strict=True)]))
            kept["retrievers"] = [one.system for one in self.library.retrievers]
            self.author.write("pools", "pools", kept)
        self.retrievers = kept["retrievers"]
        found = {d.name: (kept["found"][d.data["question"]], d.data["gold"]) for d in drafts}
        return {
            name: [k for k in keys if k not in gold][:POOLED]
            for name, (keys, gold) in found.items()
        }

    def _unknown(self, task: Task, data: dict) -> str:
        keys = (key for found in data["found"].values() for key in found)
        lost = [key for key in keys if key not in self.library.rows]
        return f"there is no document {lost[0]!r}" if lost else ""

    def _vote(self, judge: int, drafts, pools, votes) -> None:
        """Add the labels of a judge to the votes on each draft."""

        def task(draft: Draft) -> Task:
            return self._task(draft, pools[draft.name], judge)

        for draft, data in self.ask("pool", drafts, task, _incomplete):
            votes[draft.name].append({d["key"]: d["label"] for d in data["documents"]})

    def _task(self, draft: Draft, others: list[str], judge: int) -> Task:
        question, gold = draft.data["question"], draft.data["gold"]
        parts = {key: self.library.text(key) for key in gold}
        parts |= {key: self.library.passage(key, question, PASSAGE) for key in others}
        order = Stream("pool", draft.name, judge).sample(list(parts), len(parts))
        material = "\n\n---\n\n".join(parts[key] for key in order)
        values = {"question": question, "material": material}
        return Task(f"pool {draft.name} judge {judge}", values, (order, gold))

    def _settle(self, draft: Draft, rows: list[dict], settled: list, changed: list) -> None:
        gold = draft.data["gold"]
        classes = {key: classify([row[key] for row in rows], gold=key in gold) for key in rows[0]}
        required = [key for key in (*gold, *classes) if classes[key] == "required"]
        required = list(dict.fromkeys(required))
        notes = draft.notes | {"classes": classes, "judges": len(rows)}
        low, high = draft.flow["gold"]
        if set(required) == set(gold):
            settled.append(replace(draft, notes=notes))
        elif low == high or not low <= len(required) <= high:
            why = f"its gold set would be corrected from {', '.join(gold)} to {', '.join(required) or 'none'}"
            self.refuse("pool", draft.name, why)
        else:
            data = draft.data | {"gold": required}
            changed.append(replace(draft, data=data, notes=notes | {"gold before": gold}))

    def _rewritten(self, drafts: list[Draft]) -> Iterator[Draft]:
        """Yield corrected questions with a new answer; facts that forbid something stay."""

        def task(draft: Draft) -> Task:
            material = {"material": self.library.texts(draft.data["gold"])}
            return Task(f"answer {draft.name}", draft.asked() | material, draft)

        for draft, data in self.ask("answer", drafts, task):
            kept = [fact for fact in draft.data["facts"] if is_anti_hallucination(fact)]
            facts = list(dict.fromkeys([*data["facts"], *kept]))
            yield replace(draft, data=draft.data | {"answer": data["answer"], "facts": facts})


def _required(row: Mapping[str, str]) -> set[str]:
    return {key for key, label in row.items() if label == "required"}


def _differ(rows: Sequence[Mapping[str, str]]) -> bool:
    return len(rows) == 2 and _required(rows[0]) != _required(rows[1])


def _incomplete(task: Task, data: dict) -> str:
    keys = [row["key"] for row in data["documents"]]
    if lost := [key for key in task.given[0] if key not in keys]:
        return f"no label for {lost[0]!r}"
    if foreign := [key for key in keys if key not in task.given[0]]:
        return f"{foreign[0]!r} is none of the documents"
    return "a document has two labels" if len(keys) > len(set(keys)) else ""


def drawn(drafts: Sequence[Draft], wanted: Mapping[str, int], seed: int) -> list[Draft]:
    """Return so many questions of each type, chosen at random, in their order."""
    kept: list[Draft] = []
    for kind, count in wanted.items():
        own = [draft for draft in drafts if draft.kind == kind]
        chosen = {d.name for d in Stream(seed, "drawn", kind).sample(own, count)}
        kept += [draft for draft in own if draft.name in chosen]
    return kept
