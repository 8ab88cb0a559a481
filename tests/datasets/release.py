"""A folder in the shape of the papers' own releases, and of nothing else.

The texts are those of the embedded sample, at the papers' lengths; names of files and columns are the
official ones. LiveRAG's scores are drawn from a seed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath

import numpy as np

from ragkit import paths
from ragkit.datasets.registry import entry
from ragkit.files import read_jsonl
from tests.datasets.official import PARQUET, write

COPIED = ["enterpriserag_bench/questions.jsonl", "enterpriserag_bench/extra_questions.jsonl"]
COPIED += ["wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"]
COPIED += [f"wixqa/wixqa_{name}/test.jsonl" for name in ("expertwritten", "simulated", "synthetic")]
DOCUMENTS = "enterpriserag_bench/all_documents.zip"
EXAMPLES = ["a102a6cb-a608-493c-928f-d32a0da4dbf6", "b5d19fcb-1711-4f9f-82cf-f81403382444"]
EXAMPLES += ["8269372f-be5c-4212-8830-c7e0ca1b295e"]
NAMES = ("wixqa", "enterpriserag_bench", "liverag")


def make(folder: Path) -> Path:
    """Write the official files of the three benchmarks; return the folder."""
    for path in COPIED:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.SAMPLE / path, folder / path)
    members = {}
    for row in read_jsonl(paths.SAMPLE / entry(DOCUMENTS).sample):
        at = PurePosixPath(row["path"])
        name = f"./{at.parent}/{row['doc_id']}__{at.stem}.txt"
        members[name] = f"{row['title']}\n\n{row['content']}\n"
    # What is odd in the real archive: an id of two files, an empty thread, the questions.
    members[f"./slack/again/{row['doc_id']}__again.txt"] = f"{row['title']}\n\nOnce more.\n"
    members["./slack/general/dsid_0__silent.txt"] = "\n"
    members["questions.jsonl"] = (folder / COPIED[0]).read_text("utf-8")
    rows = read_jsonl(paths.SAMPLE / entry(PARQUET).sample)
    rng = np.random.default_rng(5)
    diff = rng.normal(-1.5, 1.5, len(rows)).clip(-6, 6)
    for row, identifier in zip(rows, EXAMPLES, strict=False):  # of Table 5
        row["Supporting_Documents"][0]["doc_id"] = f"<urn:uuid:{identifier}>"
    for row, b, noise in zip(rows, diff, rng.normal(size=len(rows)), strict=True):
        row["ACS [-2 : 1]"] = float(np.tanh(-0.5 * b) + 0.1 * noise)
        row["ACS_Std"] = 0.4
        row["IRT-diff [-6 : 6]"], row["IRT-disc [-0.6 : 1.4]"] = float(b), float(0.5 + 0.2 * noise)
        row["DataMorgana_Config"] = json.loads(json.dumps(row["DataMorgana_Config"]))
    return write(folder, {DOCUMENTS: members, PARQUET: rows})


if __name__ == "__main__":
    import sys

    make(Path(sys.argv[1]))
