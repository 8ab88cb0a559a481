"""Validate a judge: how far its verdicts agree with another judge's, with intervals.

Answers to one question are not independent, so every interval resamples questions, each with all
the answers to it. A frame of `judged_answers` is one of `ragkit.judging.verdicts`; `options` are
resamples and seed of `clustered`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from ragkit import checks
from ragkit.errors import DataError
from ragkit.judging.calibrate import fit_public
from ragkit.judging.offline import OfflineJudge, bare
from ragkit.judging.offline_text import abstains
from ragkit.judging.verdicts import correctness_tasks, fact_tasks
from ragkit.measures.stats import Interval

BINS = 10
SCHEMES = ("systems", "systems and questions", "systems and types")
Statistic = Callable[[pd.DataFrame], float]


def predict(frame: pd.DataFrame, judge: OfflineJudge, *, facts: bool = True) -> pd.DataFrame:
    """Return rows of `judged_answers` with the offline judge's probabilities.

    Added are probability (of correctness), unsure and, with facts, predicted_completeness: the
    mean probability of an answer's facts, NaN without any.
    """
    frame = frame.assign(probability=judge.probability(correctness_tasks(frame)))
    frame["unsure"] = (frame["probability"] - 0.5).abs() < judge.coefficients.unsure["margin"]
    if facts:
        tasks, rows = fact_tasks(frame)
        means = pd.Series(judge.probability(tasks)).groupby(np.array(rows)).mean()
        frame["predicted_completeness"] = means.reindex(range(len(frame))).to_numpy()
    return frame


def held_out(
    frame: pd.DataFrame, *, scheme: str = "systems", folds: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return predictions of a judge that was calibrated on other answers.

    Parameters
    ----------
    frame : DataFrame
        Rows of `judged_answers` of two judges; `DataError` if there are not two.
    scheme : {"systems", "systems and questions", "systems and types"}
        The calibration always uses the other judge's systems alone; in addition without the
        questions, or without all questions of the type, that are predicted.
    folds : int >= 2
        Parts that the questions are divided into.
    seed : int

    Returns
    -------
    DataFrame
        The rows in their order, as `predict` returns them.
    """
    checks.choice(scheme, "scheme", SCHEMES)
    checks.whole(folds, "folds", least=2)
    judges = list(dict.fromkeys(frame["judge"]))
    if len(judges) != 2:
        raise DataError(f"expected the verdicts of two judges, found {len(judges)}")
    parts = []
    for left_out in _parts(frame, scheme, folds, seed):
        for one, other in (judges, judges[::-1]):
            fitted = fit_public(frame[~left_out & (frame["judge"] == one)])
            part = frame[left_out] if scheme != "systems" else frame
            parts.append(predict(part[part["judge"] == other], OfflineJudge(fitted)))
    return pd.concat(parts).loc[frame.index]


def _parts(frame: pd.DataFrame, scheme: str, folds: int, seed: int) -> Iterator[pd.Series]:
    """Yield which rows to keep out of a calibration and to predict."""
    if scheme == "systems":
        yield pd.Series(False, frame.index)
    elif scheme == "systems and types":
        for kind in dict.fromkeys(frame["type"]):
            yield frame["type"] == kind
    else:
        names = np.array(sorted(frame["question_id"].unique()))
        np.random.default_rng(seed).shuffle(names)
        for fold in range(folds):
            yield frame["question_id"].isin(names[fold::folds])


def auc(truth, score) -> float:
    """Return the area under the ROC curve, ties counted half; NaN without both kinds.

    >>> auc([1, 0, 0], [0.9, 0.1, 0.9])
    0.75
    """
    truth, ranks = np.asarray(truth, dtype=bool), pd.Series(score).rank().to_numpy()
    yes, no = int(truth.sum()), int((~truth).sum())
    return float((ranks[truth].sum() - yes * (yes + 1) / 2) / (yes * no)) if yes and no else np.nan


def spearman(one, other) -> float:
    """Return Spearman's correlation, NaN where one side does not vary."""
    with np.errstate(invalid="ignore"):
        return float(pd.Series(one).rank().corr(pd.Series(other).rank()))


def calibration_error(truth, probability, *, bins: int = BINS) -> float:
    """Return the mean distance of the probability from the share of yes, over bins of equal width.

    The expected calibration error of Naeini, Cooper and Hauskrecht (2015), Obtaining well
    calibrated probabilities using Bayesian binning.
    """
    frame = pd.DataFrame({"correct": truth, "probability": probability}, dtype=float)
    curve = calibration_curve(frame, bins=bins)
    return float((curve["probability"] - curve["correct"]).abs() @ curve["n"] / len(frame))


def calibration_curve(frame: pd.DataFrame, *, bins: int = BINS) -> pd.DataFrame:
    """Return the share of correct answers by probability: probability, correct, n of each bin."""
    place = np.minimum((frame["probability"] * bins).astype(int), bins - 1)
    columns = {"probability": ("probability", "mean"), "correct": ("correct", "mean")}
    return frame.groupby(place).agg(**columns, n=("correct", "size")).reset_index(drop=True)


def _tau(frame: pd.DataFrame, score: pd.Series) -> float:
    """Return Kendall's tau of the systems' mean verdicts and mean scores."""
    means = pd.DataFrame({"correct": frame["correct"], "score": score}).groupby(frame["system"])
    return float(kendalltau(*means.mean().to_numpy().T).statistic)


AGREEMENT: dict[str, Statistic] = {
    "ROC AUC": lambda rows: auc(rows["correct"], rows["probability"]),
    "accuracy": lambda rows: np.mean((rows["probability"] >= 0.5) == rows["correct"]),
    "Spearman, completeness": lambda rows: spearman(
        rows["completeness"], rows["predicted_completeness"]
    ),
    "Brier": lambda rows: np.mean((rows["probability"] - rows["correct"]) ** 2),
    "ECE": lambda rows: calibration_error(
        rows["correct"].to_numpy(float), rows["probability"].to_numpy()
    ),
    "tau, mean probability": lambda rows: _tau(rows, rows["probability"]),
    "tau, share of yes": lambda rows: _tau(rows, rows["probability"] >= 0.5),
}


def clustered(
    frame: pd.DataFrame, statistic: Statistic, *, resamples: int = 500, seed: int = 0
) -> Interval:
    """Return a statistic with its 95 % percentile interval over resampled questions.

    Parameters
    ----------
    frame : DataFrame
        With question_id; n rows.
    statistic : callable
        Takes rows of the frame, some of them repeatedly; NaN where it is not defined.
    resamples : int >= 1
    seed : int

    Returns
    -------
    Interval
        With n rows; NaN ends with fewer than two questions.
    """
    names, codes = np.unique(frame["question_id"], return_inverse=True)
    estimate, low, high = float(statistic(frame)), np.nan, np.nan
    if len(names) > 1:
        places = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        rng, numbers = np.random.default_rng(seed), frame.select_dtypes(exclude="object")
        rows = numbers.assign(system=frame["system"]) if "system" in frame else numbers
        draws = np.empty(resamples)
        for number in range(resamples):
            drawn = rng.integers(len(names), size=len(names))
            draws[number] = statistic(rows.take(np.concatenate([places[k] for k in drawn])))
        if not np.isnan(draws).all():
            low, high = np.nanquantile(draws, [0.025, 0.975])
    return Interval(estimate, float(low), float(high), len(frame))


def summarise(frame: pd.DataFrame, **options) -> pd.DataFrame:
    """Return the statistics `AGREEMENT` of predictions and verdicts: metric, value, low, high, n.

    ROC AUC and accuracy (at one half) of the probability, Spearman's correlation of completeness,
    Brier score, expected calibration error, and Kendall's tau of the systems' ranks by mean
    verdict and by mean probability, or by share of probabilities of one half or more. The frame
    has system, question_id, correct, completeness, probability, predicted_completeness.
    """
    rows = [(name, *clustered(frame, one, **options)) for name, one in AGREEMENT.items()]
    return pd.DataFrame(rows, columns=["metric", "value", "low", "high", "n"])


def by_type(frame: pd.DataFrame, types: pd.Series, **options) -> pd.DataFrame:
    """Return the ROC AUC against each judge by type of question.

    Parameters
    ----------
    frame : DataFrame
        With judge, question_id, correct, probability.
    types : Series
        Type by question_id.

    Returns
    -------
    DataFrame
        type, system (the judge), value (NaN where all answers have one verdict), low, high, n
        (questions).
    """
    rows = []
    for (kind, judge), group in frame.groupby([frame["question_id"].map(types), "judge"]):
        found = clustered(group, AGREEMENT["ROC AUC"], **options)
        rows.append((kind, judge, *found[:3], group["question_id"].nunique()))
    return pd.DataFrame(rows, columns=["type", "system", "value", "low", "high", "n"])


def standings(frame: pd.DataFrame, columns: Mapping[str, str], **options) -> pd.DataFrame:
    """Return each system's mean of some columns: scale, system, value, low, high, n.

    `columns` maps a column to the name of its scale, which is formatted with the row's judge.
    """
    rows = []
    for (judge, system), group in frame.groupby(["judge", "system"], sort=False):
        for column, name in columns.items():
            found = clustered(group, lambda rows, column=column: rows[column].mean(), **options)
            rows.append((name.format(judge=judge), system, *found))
    return pd.DataFrame(rows, columns=["scale", "system", "value", "low", "high", "n"])


def variance_shares(frame: pd.DataFrame) -> dict[str, float]:
    """Return the shares of question, system and single answer in the variance of verdicts.

    Components of variance of the two-way layout without replication (Searle, Casella and
    McCulloch, 1992, section 4.7) of one judge's verdicts, negative estimates taken as 0. `answer`
    is the rest: the answer itself, and the judge's noise. Questions that not every system
    answered are left out.
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
    probabilities count half. A judge that decides between them without regard to the probability
    gives one half; how easy a question is has no influence.
    """
    pairs = []
    for _, group in frame.groupby("question_id"):
        yes = group.loc[group["correct"], "probability"].to_numpy()
        no = group.loc[~group["correct"], "probability"].to_numpy()
        pairs.append((np.sign(yes[:, None] - no[None, :]).ravel() + 1) / 2)
    values = np.concatenate(pairs)
    if not len(values):
        raise DataError("no two answers to one question have different verdicts")
    return float(values.mean())


def dependence(frame: pd.DataFrame, **options) -> pd.DataFrame:
    """Return signs of whether each judge's verdicts depend on the answers and the gold answers.

    Parameters
    ----------
    frame : DataFrame
        Rows of `judged_answers` on answerable questions, with probability.

    Returns
    -------
    DataFrame
        One row a judge. accepted: share of answers accepted; accepted_abstaining and
        accepted_other: the same of answers that open by saying that they have no answer, and of
        the others; auc_other: ROC AUC of the probability among the others, with low and high;
        concordance: see `concordance`; question, system, answer: see `variance_shares`;
        same_text: share of texts given by several systems to a question that got one verdict.
    """
    rows = []
    for judge, group in frame.groupby("judge", sort=False):
        silent = group["answer"].map(bare).map(abstains).astype(bool)
        other = group[~silent]
        repeated = group[group.duplicated(["question_id", "answer"], keep=False)]
        verdicts = repeated.groupby(["question_id", "answer"])["correct"].nunique()
        found = clustered(other, AGREEMENT["ROC AUC"], **options)
        accepted = {
            "accepted": group["correct"].mean(),
            "accepted_abstaining": group.loc[silent, "correct"].mean(),
            "accepted_other": other["correct"].mean(),
        }
        area = dict(zip(("auc_other", "low", "high"), found, strict=False))
        last = {"concordance": concordance(group), **variance_shares(group)}
        rows.append(
            {"judge": judge, **accepted, **area, **last, "same_text": (verdicts == 1).mean()}
        )
    return pd.DataFrame(rows)


def repeatability(frame: pd.DataFrame, one: str, other: str) -> dict[str, float]:
    """Return how far two judges in a frame of `judged_answers` agree on the same answers.

    The dict has answers (the same text from the same system), agreement, auc of the one's verdicts
    for the other's, spearman of completeness.
    """
    keys = ["system", "question_id", "answer"]
    both = frame[frame["judge"] == one].merge(frame[frame["judge"] == other], on=keys)
    return {
        "answers": len(both),
        "agreement": float((both["correct_x"] == both["correct_y"]).mean()),
        "auc": auc(both["correct_x"], both["correct_y"].astype(float)),
        "spearman": spearman(both["completeness_x"], both["completeness_y"]),
    }
