import numpy as np
import pytest

from ragkit import irt
from ragkit.irt import fitting, large


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("options", [{}, {"disc": "signed"}, {"model": "1pl"}])
def test_the_large_path_agrees_with_the_joint_fit(monkeypatch, missing, options):
    made = irt.simulate(80, 400, missing=missing, seed=1)
    joint = irt.fit(made.scores, **options)
    monkeypatch.setattr(fitting, "LARGE", 1000)
    monkeypatch.setattr(large, "_SAMPLE", 16_000)
    binned = irt.fit(made.scores, **options)
    assert binned.converged
    table = irt.agreement({"joint": joint, "binned": binned}).set_index("parameter")
    assert table.loc["theta", "r"] > 0.998
    # a signed item that hardly runs either way has a mode on both sides of zero, and the two paths
    # may choose differently; elsewhere they agree
    same = np.sign(joint.items["disc"]) == np.sign(binned.items["disc"])
    assert same.mean() >= (0.99 if "disc" in options else 1)
    both = joint.items["diff"][same].corr(binned.items["diff"][same], method="spearman")
    assert both > 0.995
    assert (table["shift"].drop("theta") < 0.3).all()
    ratio = binned.items["se_diff"] / joint.items["se_diff"]
    assert ratio.median() == pytest.approx(1, abs=0.1)


def test_splits_keep_the_ability():
    theta = np.array([-5.9, -0.031, 0.0, 2.3456])
    weight = large.splits(theta)
    assert weight.sum(1) == pytest.approx(1)
    assert weight @ large._NODES == pytest.approx(theta, abs=1e-6)
    assert ((weight > 0).sum(1) <= 2).all()
