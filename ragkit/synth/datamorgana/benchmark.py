"""A made set of questions, in the fields of LiveRAG's appendix B, and what is known beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ragkit.files import write_jsonl
from ragkit.synth.stamp import write_json


@dataclass(frozen=True)
class Benchmark:
    """Questions, notes on each, a report, and what was left out.

    The notes are `Index`, `facts` (what is asked for, as sentences) and `marks` (the documents' own
    words). The report says how documents and questions came and went, and the settings.
    """

    rows: list[dict]
    notes: list[dict]
    report: dict = field(default_factory=dict)
    left_out: list[dict] = field(default_factory=list)  # stage, item, reason and remedy

    def write(self, out: str | Path) -> None:
        """Write `out` and beside it `STEM.notes.jsonl`, `STEM.report.json`, `STEM.left_out.jsonl`.

        The last one only if something was left out. `out` is written last.
        """
        out = Path(out)
        write_jsonl(beside(out, "notes.jsonl"), self.notes)
        write_json(beside(out, "report.json"), self.report)
        if self.left_out:
            write_jsonl(beside(out, "left_out.jsonl"), self.left_out)
        write_jsonl(out, self.rows)


def beside(out: Path, tail: str) -> Path:
    """Return the path of a file beside a file of questions."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.{tail}")
