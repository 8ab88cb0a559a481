import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.errors import UsageError
from ragkit.irt.likelihood import Graded

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


EM = {"likelihood": "graded"}


def log_probabilities(theta, a, b):
    """Log probabilities of the levels 0 to 1."""
    b = np.asarray(b)
    family = Graded(np.linspace(0, 1, b.shape[-1] + 1), (0, 1))
    return family.log_probabilities(np.asarray(a)[..., None] * (np.asarray(theta)[..., None] - b))


def graded(seed, n=200, m=12, levels=4):
    """Graded scores with known truth: wide frame, abilities, slopes, thresholds."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    theta = (theta - theta.mean()) / theta.std()
    a = np.exp(rng.normal(0.3, 0.3, m))
    b = np.sort(rng.normal(0, 1.0, (m, levels - 1)), axis=1) + 0.25 * np.arange(levels - 1)
    p = np.exp(log_probabilities(theta[:, None], a, b))
    x = (p.cumsum(-1) < rng.random((n, m, 1))).sum(-1).astype(float)
    frame = pd.DataFrame(x, [f"s{i:03d}" for i in range(n)], [f"q{j:02d}" for j in range(m)])
    return frame, theta, a, b


def long(wide):
    return (
        wide.rename_axis("subject_id")
        .reset_index()
        .melt("subject_id", var_name="item_id", value_name="score")
    )


def near(found, want, *columns, **tolerance):
    """Assert that columns of two frames, in their order, hold the same numbers."""
    for name in columns:
        assert found[name].to_numpy() == pytest.approx(want[name].to_numpy(), **tolerance)


def survives_saving(result, folder):
    """Assert that a result is the same when it was saved and loaded, but without its scores."""
    for left in ("facets.csv", "draws.npz"):
        (folder / left).touch()
    again, names = irt.load(result.save(folder)), {"fit.json", "items.csv", "subjects.csv"}
    more = {"facets.csv": result.facets, "draws.npz": result.draws}
    names |= {name for name, part in more.items() if part is not None}
    assert {path.name for path in folder.iterdir()} == names
    for name in ("items", "subjects", "facets"):
        if (want := getattr(result, name)) is not None:
            pd.testing.assert_frame_equal(getattr(again, name), want)
    assert list(map(type, again.subjects.index)) == list(map(type, result.subjects.index))
    for name, draws in (result.draws or {}).items():
        assert np.array_equal(again.draws[name], draws)
    assert again.info == json.loads(json.dumps(result.info))
    assert again.converged is result.converged
    cells = result.data.frame()
    assert again.predict().equals(result.predict())
    assert again.predict(cells).equals(result.predict(cells))
    with pytest.raises(UsageError, match="does not hold the scores"):
        again.pointwise()
