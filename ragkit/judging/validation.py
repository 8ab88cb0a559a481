"""Validate a judge: how far its verdicts agree with another judge's, with intervals.

Answers to one question are not independent, so every interval resamples questions, each with all
the answers to it. A frame of `judged_answers` is one of `ragkit.judging.verdicts`; `options` are
resamples and seed of `clustered`.

>>> frame = pd.DataFrame({"judge": "A", "system": [*"ssttuu"], "question_id": ["q1", "q2"] * 3})
>>> frame = frame.assign(correct=[True, False, True, True, False, False], text="Where?")
>>> frame["probability"] = [0.9, 0.2, 0.8, 0.4, 0.3, 0.6]
>>> auc(frame), calibration_error(frame, bins=2), concordance(frame)
(0.8888..., 0.0666..., 0.75)
>>> calibration_curve(frame, bins=2)
   probability   correct  n
0     0.300000  0.333333  3
1     0.766667  0.666667  3
>>> clustered(frame, mean_of("probability"), by=["system"], resamples=99)[["system", "value"]]
  system  value
0      s   0.55
1      t   0.60
2      u   0.45
>>> variance_shares(frame)
{'question': 0.0, 'system': 0.4999..., 'answer': 0.5}

Answers of two systems, one of which is right where the other is wrong:

>>> from ragkit import datasets
>>> from ragkit.judging import load_judge
>>> asked = datasets.load("enterpriserag_bench").questions.head(20)
>>> frame = asked.rename(columns={"text": "question", "answer": "gold"}).assign(answerable=True)
>>> right, wrong, even = frame["gold"], frame["gold"].iloc[::-1].to_numpy(), np.arange(20) % 2 == 0
>>> one = frame.assign(system="one", answer=right.where(even, wrong), correct=even)
>>> two = frame.assign(system="two", answer=right.where(~even, wrong), correct=~even)
>>> both = pd.concat([one, two], ignore_index=True).assign(judge="A", completeness=0.5)
>>> told = predict(both, load_judge("offline"), facts=False)
>>> auc(told) > 0.9, dependence(told, resamples=50)["accepted"].tolist()
(True, [0.5])
>>> with_labels(told, labels=10, resamples=50)["system"].tolist()
['one', 'two', 'two - one']
>>> again = pd.concat([both, both.assign(judge="B")], ignore_index=True)
>>> repeatability(again, "A", "B")["agreement"], len(held_out(again, folds=2))
(1.0, 80)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score

from ragkit import checks, display
from ragkit.errors import DataError
from ragkit.judging.calibrate import fit_public
from ragkit.judging.judges import tasks
from ragkit.judging.offline import OfflineJudge, bare
from ragkit.judging.offline_text import abstains
from ragkit.judging.verdicts import fact_tasks
from ragkit.measures import stats

BINS = 10
SCHEMES = ("systems", "systems and questions", "systems and types")
Statistic = Callable[[pd.DataFrame], float]


def predict(frame: pd.DataFrame, judge: OfflineJudge, *, facts: bool = True) -> pd.DataFrame:
    """Return rows of `judged_answers` with the offline judge's probabilities.

    Added are probability (of correctness) and, with facts, predicted_completeness: the mean
    probability of an answer's facts, NaN without any.
    """
    frame = frame.assign(probability=judge.probability(tasks("correctness", frame)))
    if facts:
        asked, rows = fact_tasks(frame)
        means = pd.Series(judge.probability(asked)).groupby(np.array(rows)).mean()
        frame["predicted_completeness"] = means.reindex(range(len(frame))).to_numpy()
    return frame


def held_out(
    frame: pd.DataFrame, *, scheme: str = "systems", folds: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return predictions (see `predict`) of a judge that was calibrated on other answers.

    Parameters
    ----------
    frame : DataFrame
        Rows of `judged_answers` of two judges; `DataError` if there are not two.
    scheme : {"systems", "systems and questions", "systems and types"}
        The calibration uses the other judge's systems alone; in addition without the questions,
        or without all questions of the type, that are predicted.
    folds, seed : int
        The number of parts that the questions are divided into, and the seed of the division.
    """
    checks.choice(scheme, "scheme", SCHEMES)
    checks.whole(folds, "folds", least=2)
    judges = list(dict.fromkeys(frame["judge"]))
    if len(judges) != 2:
        raise DataError(f"expected the verdicts of two judges, found {len(judges)}")
    rows, parts = frame.reset_index(drop=True), []  # an index may repeat a label
    if scheme == "systems":
        kept_out = [pd.Series(False, rows.index)]
    elif scheme == "systems and types":
        kept_out = [rows["type"] == kind for kind in rows["type"].unique()]
    else:
        names = np.array(sorted(rows["question_id"].unique()))
        np.random.default_rng(seed).shuffle(names)
        kept_out = [rows["question_id"].isin(names[fold::folds]) for fold in range(folds)]
    for left_out in display.progress(kept_out, "calibrations"):
        for one, other in (judges, judges[::-1]):
            fitted = fit_public(rows[~left_out & (rows["judge"] == one)])
            part = rows[left_out] if scheme != "systems" else rows
            parts.append(predict(part[part["judge"] == other], OfflineJudge(fitted)))
    return pd.concat(parts).sort_index().set_axis(frame.index)


def auc(rows: pd.DataFrame) -> float:
    """Return the area under the ROC curve of the probability of correct rows; NaN if all agree."""
    one_kind = rows["correct"].nunique() < 2
    return np.nan if one_kind else float(roc_auc_score(rows["correct"], rows["probability"]))


def calibration_curve(frame: pd.DataFrame, *, bins: int = BINS) -> pd.DataFrame:
    """Return the share of correct answers by probability: probability, correct, n of each bin."""
    place = np.minimum((frame["probability"] * bins).astype(int), bins - 1)
    columns = {"probability": ("probability", "mean"), "correct": ("correct", "mean")}
    return frame.groupby(place).agg(**columns, n=("correct", "size")).reset_index(drop=True)


def calibration_error(frame: pd.DataFrame, *, bins: int = BINS) -> float:
    """Return the mean distance of the probability from the share of yes, over bins of equal width.

    The expected calibration error of Naeini, Cooper and Hauskrecht (2015), Obtaining well
    calibrated probabilities using Bayesian binning.
    """
    curve = calibration_curve(frame, bins=bins)
    return float((curve["probability"] - curve["correct"]).abs() @ curve["n"] / len(frame))


def _spearman(rows: pd.DataFrame, one: str, other: str) -> float:
    with np.errstate(invalid="ignore"):
        return float(rows[one].rank().corr(rows[other].rank()))


def _tau(rows: pd.DataFrame, score: pd.Series) -> float:
    """Return Kendall's tau of the systems' mean verdicts and mean scores."""
    means = pd.DataFrame({"correct": rows["correct"], "score": score}).groupby(rows["system"])
    return float(kendalltau(*means.mean().to_numpy().T).statistic)


AGREEMENT: dict[str, Statistic] = {
    "ROC AUC": auc,
    "accuracy": lambda rows: np.mean((rows["probability"] >= 0.5) == rows["correct"]),
    "Spearman, completeness": lambda rows: _spearman(
        rows, "completeness", "predicted_completeness"
    ),
    "Brier": lambda rows: np.mean((rows["probability"] - rows["correct"]) ** 2),
    "ECE": calibration_error,
    "tau, mean probability": lambda rows: _tau(rows, rows["probability"]),
    "tau, share of yes": lambda rows: _tau(rows, rows["probability"] >= 0.5),
}


def clustered(
    frame: pd.DataFrame,
    statistics: Mapping[str, Statistic] = AGREEMENT,
    *,
    by: Sequence[str] = (),
    resamples: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Return statistics with their 95 % percentile intervals over resampled questions.

    Parameters
    ----------
    frame : DataFrame
        With question_id, the columns of `by`, and those that the statistics need.
    statistics : mapping of str to callable
        Each takes rows of the frame, some of them repeatedly, and gives NaN where it is not
        defined. Default: ROC AUC, accuracy (at one half), Brier score and expected calibration
        error of the probability, Spearman's correlation of completeness, and Kendall's tau of the
        systems' ranks by mean verdict and by mean probability, or share of one half or more.
    by : sequence of str
        Columns; the statistics are of each group of rows with the same values.

    Returns
    -------
    DataFrame
        The columns of `by`, metric, value, low, high (NaN of one question), n (rows), questions.
    """
    table = []
    for key, group in frame.groupby(list(by), sort=False) if by else [((), frame)]:
        names, codes = np.unique(group["question_id"], return_inverse=True)
        places = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        rng, texts = np.random.default_rng(seed), set(group.select_dtypes("object"))
        rows = group.drop(columns=texts - {"system"})
        draws = np.full((resamples, len(statistics)), np.nan)
        needed = range(resamples if len(names) > 1 else 0)
        for number in display.progress(needed, "resamples"):
            drawn = rng.integers(len(names), size=len(names))
            part = rows.take(np.concatenate([places[k] for k in drawn]))
            draws[number] = [statistic(part) for statistic in statistics.values()]
        for (metric, statistic), column in zip(statistics.items(), draws.T, strict=True):
            known = column[~np.isnan(column)]
            low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
            value = float(statistic(group))
            table.append((*key, metric, value, low, high, len(group), len(names)))
    columns = [*by, "metric", "value", "low", "high", "n", "questions"]
    return pd.DataFrame(table, columns=columns)


def mean_of(*columns: str) -> dict[str, Statistic]:
    """Return statistics for `clustered`: the mean of each column, by its name."""
    return {column: lambda rows, column=column: rows[column].mean() for column in columns}


def variance_shares(frame: pd.DataFrame) -> dict[str, float]:
    """Return the shares of question, system and single answer in the variance of verdicts.

    Components of variance of the two-way layout without replication (Searle, Casella and
    McCulloch, 1992, section 4.7) of one judge's verdicts on questions that every system answered,
    negative estimates taken as 0. `answer` is the rest: the answer itself, and the judge's noise.
    """
    grid = frame.pivot(index="question_id", columns="system", values="correct").dropna()
    grid = grid.to_numpy(float)
    n, k = grid.shape
    if n < 2 or k < 2:
        raise DataError("expected two systems and two questions that both answered")
    rows, columns, middle = grid.mean(axis=1), grid.mean(axis=0), grid.mean()
    rest = grid - rows[:, None] - columns + middle
    residual = (rest**2).sum() / ((n - 1) * (k - 1))
    parts = {
        "question": max(0.0, (k * rows.var(ddof=1) - residual) / k),
        "system": max(0.0, (n * columns.var(ddof=1) - residual) / n),
        "answer": residual,
    }
    total = sum(parts.values())
    return {name: float(part / total) if total else np.nan for name, part in parts.items()}


def concordance(frame: pd.DataFrame) -> float:
    """Return how often the accepted of two answers to one question is the more probable one.

    Over all pairs of answers to the same question with different verdicts of one judge; equal
    probabilities count half. Verdicts that do not depend on the probability give one half.
    """
    rows = frame[["question_id", "probability"]]
    yes, no = rows[frame["correct"]], rows[~frame["correct"]]
    pairs = yes.merge(no, on="question_id")
    if pairs.empty:
        raise DataError("no two answers to one question have different verdicts")
    return float((np.sign(pairs["probability_x"] - pairs["probability_y"]).mean() + 1) / 2)


def dependence(frame: pd.DataFrame, **options) -> pd.DataFrame:
    """Return signs of whether each judge's verdicts depend on the answers and the gold answers.

    `frame` has rows of `judged_answers` on answerable questions, with probability. One row a judge
    has accepted (share of answers); accepted_abstaining and accepted_other: that of answers that
    open by saying that they have no answer, and of the others; auc_other (ROC AUC among the
    others), low, high; `concordance`; question, system, answer: see `variance_shares`; same_text:
    share of texts given by several systems to a question that got one verdict.
    """
    rows = []
    for judge, group in frame.groupby("judge", sort=False):
        silent = group["answer"].map(bare).map(abstains).astype(bool)
        found = clustered(group[~silent], {"ROC AUC": auc}, **options).iloc[0]
        repeated = group[group.duplicated(["question_id", "answer"], keep=False)]
        verdicts = repeated.groupby(["question_id", "answer"])["correct"].nunique()
        rows.append(
            {
                "judge": judge,
                "accepted": group["correct"].mean(),
                "accepted_abstaining": group.loc[silent, "correct"].mean(),
                "accepted_other": group.loc[~silent, "correct"].mean(),
                **{"auc_other": found["value"], "low": found["low"], "high": found["high"]},
                "concordance": concordance(group),
                **variance_shares(group),
                "same_text": (verdicts == 1).mean(),
            }
        )
    return pd.DataFrame(rows)


def repeatability(frame: pd.DataFrame, one: str, other: str) -> dict[str, float]:
    """Return how far two judges in a frame of `judged_answers` agree on the same answers.

    The dict has answers (the same text from the same system), agreement, auc of the one's verdicts
    for the other's, spearman of completeness.
    """
    keys = ["system", "question_id", "answer"]
    both = frame[frame["judge"] == one].merge(frame[frame["judge"] == other], on=keys)
    pairs = pd.DataFrame({"correct": both["correct_x"], "probability": both["correct_y"]})
    return {
        "answers": len(both),
        "agreement": float((both["correct_x"] == both["correct_y"]).mean()),
        "auc": auc(pairs.astype(float)),
        "spearman": _spearman(both, "completeness_x", "completeness_y"),
    }


def with_labels(
    frame: pd.DataFrame, *, labels: int = 100, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return what a few verdicts and the offline judge's probabilities of all answers tell.

    As many answers as a system has are drawn with replacement, and the first `labels` of them
    keep their verdict: `stats.prediction_powered` estimates the share that is correct, and for
    each system after the judge's first the difference to that one. `frame` has judge, system,
    question_id, correct, probability; no question twice in a system, unless it is the only one.

    Returns
    -------
    DataFrame
        One row per judge and system, or difference ("a - b"): answers, mean (of all verdicts),
        coverage and coverage_labels (how often the interval, and that of the labels alone, holds
        this mean; 0.95 is promised), width (mean width over that of the labels alone) and
        possible (the width that the correlation of verdict and probability allows).
    """
    table, rng = [], np.random.default_rng(seed)
    for judge, group in frame.groupby("judge", sort=False):
        columns = group.set_index("question_id")[["correct", "probability"]].astype(float)
        own = {
            name: columns[group["system"].to_numpy() == name] for name in group["system"].unique()
        }
        first, *others = own
        own |= {f"{name} - {first}": (own[name] - own[first]).dropna() for name in others}
        for name, part in own.items():
            truth, told = part.to_numpy().T
            draws = []
            for _ in display.progress(range(resamples), "resamples"):
                drawn = rng.integers(len(part), size=len(part))
                known = truth[drawn]
                known[labels:] = np.nan
                powered = stats.prediction_powered(known, told[drawn])
                draws.append((*powered[1:3], *powered.labels[1:3]))
            ends = np.array(draws).reshape(resamples, 2, 2)
            held = (ends[..., 0] <= truth.mean()) & (truth.mean() <= ends[..., 1])
            width, alone = np.diff(ends)[..., 0].mean(axis=0)
            shared = np.corrcoef(truth, told)[0, 1] ** 2 * (1 - labels / len(part))
            numbers = (*held.mean(axis=0), width / alone, np.sqrt(1 - shared))
            table.append((judge, name, len(part), truth.mean(), *numbers))
    columns = "judge system answers mean coverage coverage_labels width possible".split()
    return pd.DataFrame(table, columns=columns)
