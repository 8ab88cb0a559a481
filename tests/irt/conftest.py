import os
from pathlib import Path

import numpy as np
import pytest

from ragkit import irt

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def mirror():
    """The folder of real response matrices, or a skip."""
    for folder in (os.environ.get("RAGKIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and (Path(folder) / "irt").is_dir():
            return Path(folder)
    pytest.skip("no data mirror: set RAGKIT_DATA to a folder that has irt/")


def matrix(scores):
    """Long scores with subjects in rows and items in columns."""
    return scores.pivot(index="subject_id", columns="item_id", values="score")


def judged(n_subjects, n_items, severity, *, seed, **options):
    """Simulated scores, each by one judge at random: a strict judge makes all items harder."""
    made = [
        irt.simulate(n_subjects, n_items, diff_mean=shift, seed=seed, **options).scores
        for shift in severity.values()
    ]
    judge = np.random.default_rng(seed).integers(len(made), size=len(made[0]))
    score = np.choose(judge, [one["score"] for one in made])
    return made[0].assign(score=score, group=np.array(list(severity))[judge])
