"""The scaffolding of a company and the manifests of its documents, stage by stage.

EnterpriseRAG-Bench, section 4.1 and appendices B.1 to B.3.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import chain, count
from pathlib import Path

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.synth.company.files import Files, fragment
from ragkit.synth.layout import SOURCES, TYPES, printed, shares
from ragkit.synth.stages import Check, Task, check_author

FORMS = tomllib.loads(Path(__file__).with_name("sources.toml").read_text("utf-8"))
FIRST, LAST = "2025-01-01", "2026-06-30"  # between which documents are dated
LARGEST = 3000  # documents: the stages before the manifests have one answer each
PAGE = 60_000  # most characters of a company's page
AGAIN = "-again"  # ends the key of a near-duplicate, which begins with that of its original
PROJECT, CLUSTER, MOST = 18, 5, 40  # documents of a project, a cluster; at most of a topic
# Shares of all documents: projects, informal ones, and near-duplicates.
PROJECTS, MISC, DUPLICATES = 0.45, 0.044, 1 / 32
RAREST = 0.04  # of the documents are in the smallest sources
SLACK = 0.2  # by how much counts may differ from those asked for
METADATA = "\n".join(
    f"{source}: "
    + ", ".join(k + " (a whole number)" * (k in form.get("whole", ())) for k in form["metadata"])
    for source, form in FORMS.items()
)


@dataclass(frozen=True)
class Settings:
    """What a company is made from.

    Parameters
    ----------
    documents : int, 40 to 3,000
        All documents, noise included; more are written without a model (`ragkit.synth.generate`).
    questions, metadata_questions : int
    seed : int
    author : str
        `openai:MODEL`.
    surplus : float, at least 1
        How many more questions are asked for than are wanted: some fail a check.
    """

    documents: int = 320
    questions: int = 150
    metadata_questions: int = 20
    seed: int = 0
    author: str = ""
    surplus: float = 1.2

    def __post_init__(self):
        checks.whole(self.documents, "documents", least=40, most=LARGEST)
        for name in ("questions", "metadata_questions", "seed"):
            checks.whole(getattr(self, name), name, least=0)
        checks.number(self.surplus, "surplus", least=1)
        check_author(self.author)
        kept = CLUSTER * self.drafts("completeness") + self.duplicates
        asked = sum(map(self.drafts, TYPES))
        if max(asked, 2 * (kept + self.drafts("miscellaneous"))) > self.documents:
            raise UsageError(
                f"{self.documents:,} documents cannot carry {self.questions:,} questions: most "
                "questions need a document of their own, others a group of documents",
                f"ask for fewer, or make {2 * self.questions:,} documents or more",
            )

    @cached_property
    def wanted(self) -> dict[str, int]:
        """Return the questions by type, in the paper's proportions (Table 2)."""
        return shares(self.questions, {kind: printed("2", "n_questions")[kind] for kind in TYPES})

    @cached_property
    def mix(self) -> dict[str, int]:
        """Return the documents by source: as in the paper (Table 9), but none is rare."""
        sizes, least = printed("9", "n_documents"), max(1, round(RAREST * self.documents))
        rest = shares(self.documents - least * len(SOURCES), {s: sizes[s] for s in SOURCES})
        return {source: least + more for source, more in rest.items()}

    def drafts(self, kind: str) -> int:
        """Return how many questions of a type are asked for."""
        return math.ceil(self.wanted[kind] * self.surplus)

    @property
    def duplicates(self) -> int:
        return max(round(DUPLICATES * self.documents), self.drafts("conflicting_info"))


class Plan:
    """What will be written about the company of a page: each attribute is the answer of a stage."""

    def __init__(self, files: Files, page: str, settings: Settings):
        self.files, self.page, self.settings = files, page, settings

    def _stage(self, name: str, values: Mapping, check: Check, given: object = None) -> dict:
        return self.files.need(name, [Task(name, values, given)], check)[0]

    @cached_property
    def company(self) -> dict:
        sources = ", ".join(f"{source} ({n})" for source, n in self.settings.mix.items())
        known = {"page": self.page, "documents": self.settings.documents, "sources": sources}
        found = self._stage("company", known | {"people": self._staff}, self._no_company)
        if found.get("contradictions"):
            raise DataError(
                f"stage 'company', item 'company': the page contradicts itself: "
                f"{'; '.join(found['contradictions'])}",
                f"empty the list `contradictions` in {self.files.path('company', 'company')} to go "
                "on with what the file says, or begin another folder with a page without them",
            )
        return found

    @property
    def _staff(self) -> int:
        return max(12, round(2.5 * math.sqrt(self.settings.documents)))

    @cached_property
    def overview(self) -> str:
        """Return the overview and the initiatives, which every later prompt shows."""
        company = self.company
        head = [] if company["overview"].startswith("#") else [f"# {company['name']}"]
        parts = [*head, company["overview"], "## Initiatives"]
        for one in company["initiatives"]:
            words = f"{one['why']} {one['aim']} {one['measure']} Sponsor: {one['sponsor']}."
            parts.append(f"**{one['name']}.** {words}")
        return "\n\n".join(parts)

    @cached_property
    def people(self) -> dict[str, dict]:
        values = {"company": self.overview, "people": self._staff}
        return _named(self._stage("people", values, self._no_people)["people"])

    @cached_property
    def directory(self) -> str:
        said = "- {name}, {role}, {team}; reports to {manager}; {note}"
        rows = (row | {"manager": row["manager"] or "nobody"} for row in self.people.values())
        return "\n".join(said.format_map(row) for row in rows)

    @cached_property
    def projects(self) -> dict[str, dict]:
        documents = round(PROJECTS * self.settings.documents)
        needed = math.ceil(self.settings.drafts("project_related") / 2)
        number = max(1, round(documents / PROJECT), min(needed, documents // 10))
        values = {"projects": number, "documents": documents}
        known = {"company": self.overview, "people": self.directory}
        return _named(self._stage("projects", values | known, self._no_projects)["projects"])

    @cached_property
    def clusters(self) -> dict[str, dict]:
        if not self.settings.wanted["completeness"]:
            return {}
        values = {"company": self.overview, "projects": self._listed}
        values["clusters"] = self.settings.drafts("completeness")
        return _named(self._stage("clusters", values, self._no_clusters)["clusters"])

    @property
    def _listed(self) -> str:
        return "\n".join(f"- {p['name']}: {p['description']}" for p in self.projects.values())

    @cached_property
    def topics(self) -> dict[str, dict]:
        wanted = self.settings.documents
        done = [*self.projects.values(), *self.clusters.values()]
        taken = self.settings.duplicates + sum(one["documents"] for one in done)
        if taken >= wanted * (1 - MISC):
            raise DataError(
                f"stage 'topics', item 'topics': projects, clusters and near-duplicates have "
                f"{taken:,} documents, of {wanted:,} in all",
                f"lower `documents` in {self.files.path('projects', 'projects')} or in "
                f"{self.files.path('clusters', 'clusters')}",
            )
        misc = max(round(MISC * wanted), self.settings.drafts("miscellaneous"))
        mix = ", ".join(f"{s['source']} {s['documents']}" for s in self.company["sources"])
        values = {"volume": max(1, wanted - taken - misc), "misc": misc, "most": MOST, "mix": mix}
        known = {"company": self.overview, "projects": self._listed, "sources": ", ".join(SOURCES)}
        asked = (values | known, self._no_topics, wanted - taken)
        return _named(self._stage("topics", *asked)["topics"])

    @cached_property
    def blocks(self) -> dict[str, dict]:
        """Return projects, clusters and topics with their kind, as they are written."""
        parts = {"project": self.projects, "cluster": self.clusters, "": self.topics}
        return {
            name: block | {"kind": kind or block["kind"]}
            for kind, blocks in parts.items()
            for name, block in blocks.items()
        }

    @cached_property
    def manifests(self) -> dict[str, list[dict]]:
        """Return the entries of every block, each with its block and kind; paths are unique."""
        self._no_orphans()
        tasks = [self._manifest(name, block) for name, block in self.blocks.items()]
        found = self.files.need("manifest", tasks, self._no_manifest)
        taken: set[str] = set()
        manifests: dict[str, list[dict]] = {}
        for (name, block), data in zip(self.blocks.items(), found, strict=True):
            manifests[name] = [
                entry | {"block": name, "kind": block["kind"], "path": unique(entry["path"], taken)}
                for entry in _in_order(data["documents"])
            ]
        keys = [entry["key"] for entries in manifests.values() for entry in entries]
        if twice := next((key for key in keys if keys.count(key) > 1), ""):
            raise DataError(
                f"stage 'manifest', item {twice!r}: two manifests have this key",
                f"rename it in one of the files of {self.files.folder / 'manifest'}",
            )
        return manifests

    @cached_property
    def entries(self) -> dict[str, dict]:
        """Return the entries of all documents by key."""
        return {entry["key"]: entry for rows in self.manifests.values() for entry in rows}

    def _manifest(self, name: str, block: dict) -> Task:
        kind = block["kind"]
        dated = {"first": FIRST, "last": LAST, "metadata": METADATA}
        values = {"n": block["documents"], "entries": fragment("entries", name=name, **dated)}
        values["company"] = self.overview
        if kind in ("project", "cluster"):
            values["people"] = self.directory
        shown = {"project": ("name", "description"), "cluster": ("question", "answer")}
        values |= {key: block[key] for key in shown.get(kind, ("name", "source", "description"))}
        if kind == "project":
            values["team"] = ", ".join(block["people"])
        return Task(f"manifest {name}", values, block, f"manifest-{kind}")

    def _no_orphans(self) -> None:
        for path in sorted((self.files.folder / "manifest").glob("*.json")):
            if path.stem not in self.blocks:
                raise DataError(
                    f"stage 'manifest', item 'manifest {path.stem}': {path}: no project, cluster or "
                    f"topic is called {path.stem!r}",
                    "delete the file, or put the name back where it was",
                )

    def agents(self, path: str) -> str:
        """Return what the folders on the way to a path say that they hold."""
        folders = [f for s in self.company["sources"] for f in s["folders"]]
        on_path = [f for f in folders if path.startswith(f["path"].rstrip("/") + "/")]
        lines = [f"{f['path']}: {f['holds']}" for f in on_path if f["holds"]]
        source = path.partition("/")[0]
        return "\n".join(lines) or f"{source}: {FORMS[source]['form']}"

    # What is wrong with an answer

    def _no_company(self, task: Task, data: dict) -> str:
        names = [one["source"] for one in data["sources"]]
        if sorted(names) != sorted(SOURCES):
            return f"the sources should be {', '.join(SOURCES)}, each once"
        for one in data["sources"]:
            for folder in one["folders"]:
                if folder["path"].split("/")[0] != one["source"]:
                    return f"the folder {folder['path']!r} does not lie in {one['source']}"
        return _twice(data["initiatives"])

    def _no_people(self, task: Task, data: dict) -> str:
        managers = {one["name"]: one["manager"] for one in data["people"]}
        if twice := _twice(data["people"]):
            return twice
        for name, manager in managers.items():
            if manager and manager not in managers:
                return f"the manager of {name}, {manager!r}, is not in the directory"
            above = [name]
            while above[-1] and managers[above[-1]] not in above:
                above.append(managers[above[-1]])
            if above[-1]:
                return f"{name} is above themselves"
        sponsors = (one["sponsor"] for one in self.company["initiatives"])
        lost = [name for name in sponsors if name not in managers]
        return f"the sponsor {lost[0]!r} is not in the directory" if lost else ""

    def _no_projects(self, task: Task, data: dict) -> str:
        initiatives = [one["name"] for one in self.company["initiatives"]]
        for one in data["projects"]:
            if one["initiative"] not in initiatives:
                return f"{one['name']}: no initiative is called {one['initiative']!r}"
            if lost := [name for name in one["people"] if name not in self.people]:
                return f"{one['name']}: {lost[0]!r} is not in the directory"
        return _twice(data["projects"])

    def _no_clusters(self, task: Task, data: dict) -> str:
        return _twice([*self.projects.values(), *data["clusters"]])

    def _no_topics(self, task: Task, data: dict) -> str:
        topics, wanted = data["topics"], task.given
        for one in topics:
            if one["source"] not in (*SOURCES, "several"):
                return f"{one['name']}: no source is called {one['source']!r}"
            if one["documents"] > MOST:
                return f"{one['name']} has more than {MOST} documents: split it"
        total = sum(one["documents"] for one in topics)
        if abs(total - wanted) > SLACK * wanted:
            return f"the topics have {total:,} documents together, {wanted:,} are wanted"
        return _twice([*self.projects.values(), *self.clusters.values(), *topics])

    def _no_manifest(self, task: Task, data: dict) -> str:
        name, block = task.item.partition(" ")[2], task.given
        wanted, entries = block["documents"], data["documents"]
        keys = [entry["key"] for entry in entries]
        if abs(len(entries) - wanted) > max(1, SLACK * wanted):
            return f"{len(entries)} documents, {wanted} are wanted"
        for entry in entries:
            key = entry["key"]
            if not key.startswith(f"{name}-") or key.endswith(AGAIN):
                return f"the key {key!r} should begin with {name}- and not end with {AGAIN}"
            if fault := fault_of(entry):
                return f"{key}: {fault}"
            if lost := [other for other in entry["reads"] if other not in keys]:
                return f"{key} reads {lost[0]!r}, which is not among the entries"
            if block["kind"] == "cluster" and not entry.get("carries"):
                return f"{key} carries no part of the answer"
            known = any(person in self.people for person in entry["people"])
            if block["kind"] in ("project", "cluster") and not known:
                return f"{key}: none of {', '.join(entry['people']) or 'its people'} is in the directory"
        circle = len(_in_order(entries)) < len(entries)
        return _twice(entries, "key") or "some entries read one another in a circle" * circle


def fault_of(entry: dict) -> str:
    """Return what is wrong with the place, the date or the metadata of a document."""
    source, path = entry["source"], entry["path"]
    if source not in SOURCES:
        return f"no source is called {source!r}"
    if not path.startswith(f"{source}/") or not path.endswith(".json"):
        return f"the path {path!r} should begin with {source}/ and end with .json"
    parts = path.split("/")
    if not path.isprintable() or any(part.strip(". ") == "" for part in parts) or "\\" in path:
        return f"the path {path!r} is not a path of folders and a file"
    try:
        date.fromisoformat(entry["date"])
    except ValueError:
        return f"there is no day {entry['date']!r}"
    form, metadata = FORMS[source], entry["metadata"]
    if sorted(metadata) != sorted(form["metadata"]):
        return f"metadata of {source} has the keys {', '.join(form['metadata'])}"
    for key, value in metadata.items():
        if isinstance(value, int) != (key in form.get("whole", ())):
            return f"metadata: {key} should be {'text' if isinstance(value, int) else 'a number'}"
    return ""


def _in_order(entries: list[dict]) -> list[dict]:
    """Return the entries, each behind those that it reads; without those in a circle."""
    done: dict[str, dict] = {}
    while ready := [e for e in entries if e["key"] not in done and done.keys() >= set(e["reads"])]:
        done[ready[0]["key"]] = ready[0]
    return list(done.values())


def _twice(rows: list[dict], key: str = "name") -> str:
    counts = Counter(row[key] for row in rows)
    return next((f"{name!r} comes twice" for name, n in counts.items() if n > 1), "")


def _named(rows: list[dict]) -> dict[str, dict]:
    return {row["name"]: row for row in rows}


def unique(path: str, taken: set[str]) -> str:
    """Return a path, with a number where it is taken; it is taken now."""
    stem = path.removesuffix(".json")
    numbered = (f"{stem}-{number}.json" for number in count(2))
    path = next(one for one in chain([path], numbered) if one not in taken)
    taken.add(path)
    return path
