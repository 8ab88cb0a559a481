"""What a loaded benchmark is, and where its files come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit import checks, display, schema
from ragkit.datasets import registry
from ragkit.datasets.registry import Declaration, Entry, Found, Store
from ragkit.errors import DataError, MissingData, UsageError, did_you_mean
from ragkit.files import read_frame

_TEXTS = (".jsonl", ".csv", ".tsv", ".json")
_ENDINGS = (*_TEXTS, *(f"{ending}.gz" for ending in _TEXTS), ".parquet", ".zip")
KINDS = ("documents", "questions", "answers", "scores")


@dataclass
class Dataset:
    """A benchmark as frames, each of which is an attribute too.

    `frames` are any of documents, questions, runs, answers, scores, with the columns of
    `ragkit.schema`, and others under their own names. `provenance` has a row a file: file, origin,
    extent, licence, note. `gaps` say what is missing of the official release, file by file,
    `remarks` which files are of another release or verified by no digest, `portion` what `part`
    has kept.

    >>> from ragkit import datasets
    >>> wixqa = datasets.load("wixqa").part(documents=30, questions=10)
    >>> len(wixqa.questions), wixqa.portion
    (10, '30 of 80 documents, 10 of 160 questions')
    """

    name: str
    profile: str
    frames: dict[str, pd.DataFrame]
    provenance: pd.DataFrame
    gaps: tuple[str, ...] = field(default=())
    portion: str = ""
    remarks: tuple[str, ...] = field(default=())

    def __getattr__(self, name: str) -> pd.DataFrame:
        frames = self.__dict__.get("frames", {})
        if name in frames:
            return frames[name]
        if name in schema.COLUMNS:
            raise MissingData(f"{self.name} ({self.label}) has no {name}")
        raise AttributeError(f"{name!r}: {did_you_mean(name, frames)}")

    @property
    def partial(self) -> bool:
        """Whether rows of the official release are missing."""
        return bool(self.gaps)

    @property
    def label(self) -> str:
        """What the data is, in words that belong beside every number made from it."""
        words = {"sample": "embedded sample", "own": "own data"}.get(self.profile)
        if self.partial:
            words = "partial: " + "; ".join(self.gaps)
        elif words is None:
            words = "; ".join(dict.fromkeys(self.provenance["origin"]))
            words += "".join(f" ({n})" for n in dict.fromkeys(self.provenance["note"]) if n)
        words = "; ".join([words, *self.remarks])
        return f"{words}, {self.portion}" if self.portion else words

    def substitute(self, *parts: str) -> str:
        """Return what differs from the official data in files with one of `parts` in their path.

        All files count if no part is given. It is empty for the complete registered release.
        """
        if self.profile != "paper":
            return self.label
        told = (*self.gaps, *self.remarks)
        gaps = [gap for gap in told if not parts or any(part in f"/{gap}" for part in parts)]
        return "; ".join([*gaps, self.portion] if self.portion else gaps)

    def only(self, *names: str) -> Dataset:
        """Return the benchmark with these frames and no others."""
        return replace(self, frames={name: getattr(self, name) for name in names})

    def part(self, documents: int = 0, questions: int = 0, seed: int = 0) -> Dataset:
        """Return the benchmark with so many of its questions and documents; 0 keeps all.

        Types of questions keep their proportions, and rows their order. The gold documents of the
        questions drawn are kept, and of other frames the rows whose gold documents are; `label`
        says that it is a part. Raises `UsageError` if the gold documents are more than `documents`.
        """
        checks.whole(documents, "documents", least=0)
        checks.whole(questions, "questions", least=0)
        frames, kept = dict(self.frames), []
        rng = np.random.default_rng(seed)
        asked, texts = frames.get("questions"), frames.get("documents")
        if asked is not None and 0 < questions < len(asked):
            kept.append(f"{questions:,} of {len(asked):,} questions")
            asked = asked.iloc[_in_proportion(asked["type"], questions, rng)]
            frames["questions"] = asked
        if texts is not None and 0 < documents < len(texts):
            gold = set() if asked is None else set().union(*asked["gold_doc_ids"])
            place = np.flatnonzero(texts["doc_id"].isin(gold))
            if len(place) > documents:
                raise UsageError(
                    f"{len(place):,} gold documents do not fit among {documents:,} documents",
                    "ask for more documents or fewer questions",
                )
            others = np.setdiff1d(np.arange(len(texts)), place)
            drawn = rng.choice(others, documents - len(place), replace=False)
            frames["documents"] = texts.iloc[np.sort(np.concatenate([place, drawn]))]
            kept.insert(0, f"{documents:,} of {len(texts):,} documents")
            here = set(frames["documents"]["doc_id"])
            for name, frame in frames.items():
                if name != "questions" and "gold_doc_ids" in frame:
                    frames[name] = frame[frame["gold_doc_ids"].map(here.issuperset)]
        frames = {name: frame.reset_index(drop=True) for name, frame in frames.items()}
        return replace(self, frames=frames, portion=", ".join(filter(None, [self.portion, *kept])))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(frame):,} {name}" for name, frame in self.frames.items())
        return f"<Dataset {self.name}: {sizes} ({self.label})>"

    def _repr_html_(self) -> str:
        rows = [(name, f"{len(f):,}", ", ".join(f.columns)) for name, f in self.frames.items()]
        shown = display.table(pd.DataFrame(rows, columns=["frame", "rows", "columns"]))
        after = (
            "Next: each frame is an attribute; `.part(questions=20)` is a part to try things on."
        )
        if self.partial:
            after = "Next: `ragkit data status` says how to get what is missing."
        return display.card(self.name, {"data": self.label}, shown, after=after)


def own(folder: Path) -> Dataset:
    """Read a benchmark of your own: `questions`, `documents`, `answers`, `scores`, or some of them.

    `ragkit.files.read_frame` reads each file, such as `scores.csv.gz`. Raises `MissingData` if the
    folder does not exist or holds none of the files.

    >>> from ragkit.files import write_text
    >>> path = write_text("mine/questions.csv", "id,question\\nq1,Where?\\n")
    >>> own(path.parent).questions["text"].tolist()
    ['Where?']
    """
    if not folder.is_dir():
        raise MissingData(f"{folder}: no such folder")
    tables: list[tuple[str, pd.DataFrame, Found]] = []
    for kind in KINDS:
        if path := file_of(folder, kind):
            entry = Entry(path.name, folder.name, "own", "", read={"frame": kind})
            tables.append((kind, read_frame(path, kind), Found(entry, entry, path, "own")))
    if not tables:
        found = sorted(path.name for path in folder.iterdir())[:8]
        raise MissingData(
            f"{folder}: neither questions.jsonl, documents.jsonl nor scores.csv",
            f"found {', '.join(found)}" if found else "the folder is empty",
        )
    return _assembled(folder.resolve().name, "own", [found for *_, found in tables], tables)


def file_of(folder: Path, name: str) -> Path | None:
    """Return the file of a folder that has this name and an ending that is read, or None."""
    return next(filter(Path.is_file, (folder / (name + ending) for ending in _ENDINGS)), None)


def registered(dataset: Declaration, profile: str, place: Path | Store) -> Dataset:
    """Read the files at hand of a registered dataset; see `ragkit.datasets.load`.

    `place` is the folder of the embedded sample (profile "sample") or a `Store` of real files.
    """
    from ragkit.datasets import enterprise, liverag, readers

    modules = (readers, enterprise, liverag)
    reader = next(filter(None, (getattr(m, dataset.reader, None) for m in modules)), None)
    if reader is None:
        raise DataError(f"{dataset.name}: no reader is called {dataset.reader!r}")
    files, used, tables = registry.files(dataset.name), [], []
    for file in files:
        if profile == "sample":
            found = Found(file, file, place / file.sample, "sample") if file.sample else None
        else:
            found = place.find(file.path) or place.find_slices(file)
        if found:
            tables += [(kind, table, found) for kind, table in reader(found, dataset).items()]
        elif profile != "sample" and not file.extra:
            found = Found(file, file, None, "missing")
        used += [found] if found else []
    if not tables:
        place.need(files[0].path)
    return _assembled(dataset.name, profile, used, tables)


def _assembled(
    name: str, profile: str, used: list[Found], tables: list[tuple[str, pd.DataFrame, Found]]
) -> Dataset:
    """Check tables, each with the file it is from, and join those of one frame.

    Questions without ids are made distinct and numbered. Every gold document has to be among the
    documents, if these are as registered.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for kind, table, found in tables:
        if kind in schema.COLUMNS and schema.KEYS[kind][0] in table:
            schema.check(table, kind, str(found.path))
        parts.setdefault(kind, []).append(table)
    frames = {kind: pd.concat(some, ignore_index=True) for kind, some in parts.items()}
    cut = [found for found in used if found.read.get("frame") == "documents"]
    if "documents" in frames and not any(found.partial or found.other for found in cut):
        for _, table, found in tables:
            if "gold_doc_ids" in table:
                schema.check_gold(table, frames["documents"], str(found.path))
    if "questions" in frames and "question_id" not in frames["questions"]:
        distinct = frames["questions"].drop_duplicates("text", ignore_index=True)
        distinct.insert(0, "question_id", [f"{number:04d}" for number in range(len(distinct))])
        frames["questions"] = distinct
    for kind in frames.keys() & schema.COLUMNS.keys():
        schema.check(frames[kind], kind, name)
    files = pd.DataFrame([found.provenance for found in used])
    told = files["file"].str.partition("/")[2] + " " + files["extent"]
    told = told.mask(files["extent"].isin(["complete", "sample"]))
    partial = pd.Series([found.partial for found in used])
    gaps, remarks = (tuple(told[which].dropna()) for which in (partial, ~partial))
    return Dataset(name, profile, frames, files, gaps=gaps, remarks=remarks)


def _in_proportion(kinds: pd.Series, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` places, of each kind its share of them, rising."""
    places = pd.Series(rng.permutation(len(kinds)))
    # The n-th of N of a kind stands at (n - 1/2) / N of the way: a prefix has all in proportion.
    order = places.groupby(kinds.to_numpy()[places]).cumcount() + 0.5
    share = order / kinds.groupby(kinds).transform("size").to_numpy()[places]
    chosen = np.lexsort((np.arange(len(share)), share.to_numpy()))[:count]
    return np.sort(places.to_numpy()[chosen])
