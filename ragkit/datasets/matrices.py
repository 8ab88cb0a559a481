"""Response matrices from the textbooks of item response theory, for checking the engines."""

from __future__ import annotations

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError
from ragkit.files import read_table

FILES = {
    "lsat": ("irt/ltm_LSAT.csv",),
    "lsat6": ("irt/mirt_LSAT6_freq.csv",),
    "lsat7": ("irt/mirt_LSAT7_freq.csv",),
    "sat12": ("irt/mirt_SAT12_raw.csv",),
    "science": ("irt/mirt_Science.csv",),
    "wirs": ("irt/ltm_WIRS.csv",),
    "abortion": ("irt/ltm_Abortion.csv",),
    "mobility": ("irt/ltm_Mobility.csv",),
    "czech_simpleqa": ("irt/czech_simpleqa_grades_5models.csv.gz",),
}
SAMPLE = ()

# The published key of SAT12; 8 stands for a missing response.
SAT12_KEY = "14523121312421534414334135131545"
# Correct, incorrect, not attempted.
GRADES = ("A", "B", "C")


def read(name: str, source: Source) -> Dataset:
    """Read a matrix as `scores`: one row a response, 1 for a correct one.

    Response patterns with counts are written out, one subject a person. SAT12 is scored with its
    published key. Grades of `czech_simpleqa` are 1 if correct, else 0.
    """
    found = source.need(FILES[name][0])
    where = {"scores": found.path}
    if name == "czech_simpleqa":
        rows = read_table(found.path, ("model", "simpleqa_row", "grade"))
        frame = pd.DataFrame(check_rows(rows, found))
        for number, grade in enumerate(frame["grade"], start=1):
            if grade not in GRADES:
                raise DataError(
                    f"{found.path}: row {number}: grade {grade!r}, expected {'/'.join(GRADES)}"
                )
        scores = pd.DataFrame(
            {
                "subject_id": frame["model"],
                "item_id": frame["simpleqa_row"],
                "score": (frame["grade"] == "A").astype(float),
                "grade": frame["grade"],
            }
        )
        return make(name, source, {"scores": scores}, where=where)
    wide = pd.DataFrame(check_rows(read_table(found.path, numbers=None), found))
    counts = [column for column in wide.columns if column.lower() == "freq"]
    if counts:
        repeats = wide.pop(counts[0])
        bad = (repeats < 0) | (repeats % 1 != 0)
        if bad.any():
            number = int(bad.to_numpy().argmax())
            raise DataError(
                f"{found.path}: line {number + 2}: {counts[0]} should be a count, "
                f"found {repeats.iloc[number]:g}"
            )
        wide = wide.loc[wide.index.repeat(repeats.astype(int))].reset_index(drop=True)
    if name == "sat12":
        if wide.shape[1] != len(SAT12_KEY):
            raise DataError(f"{found.path}: {wide.shape[1]} items, expected {len(SAT12_KEY)}")
        wide = (wide == [int(key) for key in SAT12_KEY]).where(wide.notna() & (wide != 8))
    width = len(str(len(wide)))
    wide.index = [f"{number:0{width}d}" for number in range(1, len(wide) + 1)]
    long = (
        wide.rename_axis("subject_id")
        .reset_index()
        .melt("subject_id", var_name="item_id", value_name="score")
    )
    long = long.dropna(subset="score").astype({"score": float}).reset_index(drop=True)
    return make(name, source, {"scores": long}, where=where)
