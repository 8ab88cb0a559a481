"""What a loaded benchmark is, and where its files come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit import schema
from ragkit.datasets.registry import Found, Store
from ragkit.errors import DataError, MissingData, UsageError, did_you_mean


class Source:
    """Files of one profile: the embedded sample, or a `Store` of real ones.

    `used` collects what was read, for the dataset's provenance.
    """

    def __init__(self, profile: str, place: Path | Store):
        self.profile = profile
        self.place = place
        self.used: list[dict] = []

    @property
    def sample(self) -> bool:
        return self.profile == "sample"

    def find(self, path: str) -> Found | None:
        """Return a registered file, or None. Not for the sample."""
        found = self.place.find(path)
        if found:
            self._note(found)
        return found

    def need(self, path: str) -> Found:
        """Return a registered file, or raise `MissingData`. Not for the sample."""
        found = self.place.need(path)
        self._note(found)
        return found

    def sample_path(self, path: str) -> Path:
        """Return a file of the embedded sample."""
        self.used.append(
            {"file": path, "origin": "embedded sample", "extent": "sample", "licence": "MIT"}
        )
        return self.place / path

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is missing from the official files, in words, file by file."""
        return tuple(
            f"{row['file'].partition('/')[2]} {row['extent']}"
            for row in self.used
            if row["extent"] not in ("complete", "sample")
        )

    @property
    def whole_corpus(self) -> bool:
        """Whether all documents are at hand, so that every gold document must be among them."""
        return not any("_kb_" in gap or "documents.zip" in gap for gap in self.gaps)

    def _note(self, found: Found) -> None:
        self.used.append(
            {
                "file": found.entry.path,
                "origin": found.entry.origin,
                "extent": found.extent,
                "licence": found.entry.licence,
                "note": found.entry.note,
            }
        )


@dataclass
class Dataset:
    """A benchmark as frames.

    Parameters
    ----------
    name : str
    profile : str
    frames : dict of str to DataFrame
        Any of documents, questions, runs, answers, scores, with the columns of `ragkit.schema`;
        each is an attribute too. Further frames may be there under their own names.
    provenance : DataFrame
        One row a file: file, origin, extent, licence, note.
    partial : bool
        Whether rows of the official release are missing.
    portion : str
        What `part` has kept, in words; empty if everything.
    """

    name: str
    profile: str
    frames: dict[str, pd.DataFrame]
    provenance: pd.DataFrame
    partial: bool = False
    gaps: tuple[str, ...] = field(default=())
    portion: str = ""

    def __getattr__(self, name: str) -> pd.DataFrame:
        frames = self.__dict__.get("frames", {})
        if name in frames:
            return frames[name]
        if name in schema.COLUMNS:
            raise MissingData(f"{self.name} ({self.label}) has no {name}")
        raise AttributeError(f"{name!r}: {did_you_mean(name, frames)}")

    @property
    def label(self) -> str:
        """What the data is, in words that belong beside every number made from it."""
        return ", ".join(filter(None, (self._whole, self.portion)))

    @property
    def _whole(self) -> str:
        if self.profile == "sample":
            return "embedded sample"
        if self.profile == "own":
            return "own data"
        if self.partial:
            return "partial: " + "; ".join(self.gaps)
        notes = dict.fromkeys(note or "" for note in self.provenance["note"].fillna(""))
        origins = dict.fromkeys(self.provenance["origin"])
        return "; ".join(origins) + "".join(f" ({note})" for note in notes if note)

    def substitute(self, part: str = "") -> str:
        """Return what stands in for the official data, for the status of a measured number.

        Parameters
        ----------
        part : str
            Only gaps in files with this in their path count; all do if it is empty.

        Returns
        -------
        str
            Empty if the official files are complete.
        """
        if self.profile != "paper":
            return self.label
        gaps = [gap for gap in self.gaps if part in gap]
        return "; ".join([*gaps, self.portion] if self.portion else gaps)

    def only(self, *names: str) -> Dataset:
        """Return the benchmark with these frames and no others."""
        return replace(self, frames={name: getattr(self, name) for name in names})

    def part(self, documents: int = 0, questions: int = 0, seed: int = 0) -> Dataset:
        """Return the benchmark with some of its questions and documents, to try things quickly.

        Questions are drawn within each type, so that types keep their proportions. The gold
        documents of the questions drawn are always kept; the others are drawn at random. Fewer
        documents make retrieval easier: the numbers are those of the part, and `label` says so.

        Parameters
        ----------
        documents, questions : int
            How many; 0, or more than there are, keeps all.
        seed : int, default=0

        Returns
        -------
        Dataset
            Rows keep their order. Of further frames with gold documents those rows stay whose
            gold documents do.

        Raises
        ------
        UsageError
            If a number is negative, or the gold documents alone are more than `documents`.
        """
        for word, number in (("documents", documents), ("questions", questions)):
            if number < 0:
                raise UsageError(f"{word} must be at least 0, not {number}")
        frames, kept = dict(self.frames), []
        rng = np.random.default_rng(seed)
        asked = frames.get("questions")
        if asked is not None and 0 < questions < len(asked):
            frames["questions"] = asked.iloc[_in_proportion(asked["type"], questions, rng)]
            kept.append(f"{questions:,} of {len(asked):,} questions")
        texts = frames.get("documents")
        if texts is not None and 0 < documents < len(texts):
            gold = set()
            if asked is not None:
                gold.update(*frames["questions"]["gold_doc_ids"])
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
        rows = "".join(
            f"<tr><td style='text-align:left'>{name}</td><td>{len(frame):,}</td>"
            f"<td style='text-align:left'>{', '.join(frame.columns)}</td></tr>"
            for name, frame in self.frames.items()
        )
        return (
            f"<p><b>{self.name}</b> ({self.label})</p><table><tr><th>frame</th><th>rows</th>"
            f"<th style='text-align:left'>columns</th></tr>{rows}</table>"
        )


def make(
    name: str,
    source: Source,
    frames: dict[str, pd.DataFrame],
    *,
    where: dict[str, Path] | None = None,
) -> Dataset:
    """Check the frames and the gold documents; return the dataset.

    Parameters
    ----------
    name : str
    source : Source
    frames : dict of str to DataFrame
    where : dict of str to path, optional
        The file that a frame was read from, for messages.

    Raises
    ------
    DataError
        If a frame is invalid, or a gold document is missing although the documents are complete.
    """
    where = where or {}
    for kind, frame in frames.items():
        if kind in schema.COLUMNS:
            schema.check(frame, kind, str(where.get(kind, name)))
    files = pd.DataFrame(source.used, columns=["file", "origin", "extent", "licence", "note"])
    if "documents" in frames and source.whole_corpus:
        for kind, frame in frames.items():
            if "gold_doc_ids" in frame:
                schema.check_gold(frame, frames["documents"], str(where.get(kind, name)))
    gaps = source.gaps
    return Dataset(name, source.profile, frames, files, partial=bool(gaps), gaps=gaps)


def _in_proportion(kinds: pd.Series, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` places, of each kind its share of them, rising."""
    places = pd.Series(rng.permutation(len(kinds)))
    # The n-th of N of a kind stands at (n - 1/2) / N of the way: a prefix has all in proportion.
    order = places.groupby(kinds.to_numpy()[places]).cumcount() + 0.5
    share = order / kinds.groupby(kinds).transform("size").to_numpy()[places]
    chosen = np.lexsort((np.arange(len(share)), share.to_numpy()))[:count]
    return np.sort(places.to_numpy()[chosen])


def check_rows(rows: list, found: Found) -> list:
    """Return `rows` if there are as many as registered."""
    expected = found.entry.rows
    if expected is not None and len(rows) != expected:
        raise DataError(f"{found.path}: {len(rows):,} rows, expected {expected:,}")
    return rows
