import json
import time

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from ragkit import cli, irt
from ragkit.cli import root


@pytest.fixture(scope="module")
def scores():
    return irt.simulate(12, 30, score_range=(-1, 2), seed=41).scores


def run(*arguments):
    return CliRunner().invoke(root, ["irt", *map(str, arguments)])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_fit_writes_three_files(scores, tmp_path, suffix):
    path = tmp_path / f"scores{suffix}"
    scores.to_parquet(path) if suffix == ".parquet" else scores.to_csv(path, index=False)
    out = tmp_path / "out"
    options = ("--model", "2pl", "--disc", "positive", "--engine", "em", "--seed", 0)
    ran = run("fit", path, "--out", out, "--range", -1, 2, *options)
    assert ran.exit_code == 0, ran.output
    assert sorted(p.name for p in out.iterdir()) == ["fit.json", "items.csv", "subjects.csv"]
    want = irt.fit(scores, score_range=(-1, 2))
    pd.testing.assert_frame_equal(irt.load(out).items, want.items, rtol=1e-6)
    assert json.loads((out / "fit.json").read_text())["score_range"] == [-1.0, 2.0]


def test_ids_that_look_like_numbers_stay_text(scores, tmp_path):
    path = tmp_path / "scores.csv"
    scores.assign(item_id="0" + scores["item_id"].str[1:]).to_csv(path, index=False)
    assert run("fit", path, "--out", tmp_path / "o", "--range", -1, 2).exit_code == 0
    assert irt.load(tmp_path / "o").items.index[0] == "000"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.rename(columns={"score": "points"}), "no column 'score'"),
        (lambda s: s, "outside the range"),
        (lambda s: s.assign(score=s["score"].mask(s.index == 3)), "line 5: no score"),
    ],
)
def test_errors_name_the_file(scores, tmp_path, capsys, change, message):
    path = tmp_path / "bad.csv"
    change(scores).to_csv(path, index=False)
    with pytest.raises(SystemExit) as stop:
        cli.main(["irt", "fit", str(path), "--out", str(tmp_path / "o")])
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert "bad.csv" in error
    assert message in error
    assert not (tmp_path / "o").exists()


def test_one_of_several_metrics(scores, tmp_path):
    other = scores.assign(metric="f1", score=scores["score"].clip(0, 1))
    path, out = tmp_path / "scores.csv", tmp_path / "o"
    pd.concat([scores.assign(metric="RR"), other]).to_csv(path, index=False)
    assert "2 metrics: RR, f1" in str(run("fit", path, "--out", out).exception)
    assert run("fit", path, "--out", out, "--metric", "f1").exit_code == 0
    pd.testing.assert_frame_equal(irt.load(out).items, irt.fit(other).items, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("subjects", "items"), [(1000, 1000), (200, 5000), (20_000, 50)])
def test_a_million_scores_take_seconds(tmp_path, subjects, items):
    """15 seconds of one core for reading and fitting, and a word about what goes on."""
    rng = np.random.default_rng(0)
    logit = rng.normal(size=(subjects, 1)) - rng.normal(size=items)
    score = np.log1p(rng.random(logit.shape) * np.expm1(logit)) / logit  # continuous Bernoulli
    ids = pd.MultiIndex.from_product([range(subjects), range(items)])
    frame = pd.DataFrame(
        {"score": score.ravel().round(6)}, ids.set_names(["subject_id", "item_id"])
    )
    frame.to_csv(tmp_path / "s.csv")
    start = time.process_time()
    ran = run("fit", tmp_path / "s.csv", "--out", tmp_path / "fit")
    assert time.process_time() - start < 15
    assert "fitting 1,000,000 scores" in ran.output
    assert ", converged" in ran.output
