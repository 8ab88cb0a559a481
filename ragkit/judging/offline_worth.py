"""What a judge is worth: how far its verdicts agree with another judge's, with intervals.

Answers to one question are not independent, so every interval resamples questions, each with all
the answers to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.judging.offline import OfflineJudge, bare
from ragkit.judging.offline_calibrate import fit_public
from ragkit.judging.offline_text import abstains
from ragkit.judging.offline_verdicts import correctness_tasks, fact_tasks
from ragkit.measures.stats import Interval

BINS = 10


def predict(frame: pd.DataFrame, judge: OfflineJudge, *, facts: bool = True) -> pd.DataFrame:
    """Return answers with what the offline judge makes of them.

    Parameters
    ----------
    frame : DataFrame
        As `ragkit.judging.offline_verdicts.judged_answers` returns it.
    judge : OfflineJudge
    facts : bool
        Whether to judge facts too.

    Returns
    -------
    DataFrame
        The rows with probability (of correctness) and, with facts, predicted_completeness: the
        mean probability of an answer's facts, NaN without any.
    """
    made = frame.assign(probability=judge.probability(correctness_tasks(frame)))
    if facts:
        tasks, rows = fact_tasks(frame)
        means = pd.Series(judge.probability(tasks)).groupby(np.array(rows)).mean()
        made["predicted_completeness"] = means.reindex(range(len(frame))).to_numpy()
    return made


def held_out(
    frame: pd.DataFrame, *, scheme: str = "systems", folds: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return predictions for answers whose like the judge was not calibrated on.

    Parameters
    ----------
    frame : DataFrame
        Rows of `judged_answers` of two judges.
    scheme : {"systems", "systems and questions", "systems and types"}
        Always calibrated on the other judge's systems alone; on top of that without the questions,
        or without all questions of the type, that are predicted.
    folds : int >= 2
        Parts that the questions are divided into.
    seed : int

    Returns
    -------
    DataFrame
        The rows in their order, with probability and predicted_completeness.

    Raises
    ------
    UsageError
        If the scheme is unknown or the folds are too few.
    DataError
        If there are not two judges.
    """
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


def _parts(frame, scheme: str, folds: int, seed: int) -> Iterator[pd.Series]:
    """Yield which rows to keep out of a calibration and to predict."""
    schemes = ("systems", "systems and questions", "systems and types")
    if scheme not in schemes:
        raise UsageError(f"no scheme {scheme!r}", did_you_mean(scheme, schemes))
    if folds < 2:
        raise UsageError(f"folds should be at least 2, found {folds!r}")
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


def clustered(
    clusters,
    statistic: Callable[[np.ndarray], float],
    *,
    level: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> Interval:
    """Return a statistic of rows with a percentile interval over resampled clusters.

    Parameters
    ----------
    clusters : sequence, length n
        The cluster (question) of each row.
    statistic : callable
        Takes places of rows, some of them repeatedly; NaN where it is not defined.
    level : float in (0, 1)
    resamples : int >= 1
    seed : int

    Returns
    -------
    Interval
        With n rows; NaN ends where fewer than two clusters are there.
    """
    names, codes = np.unique(np.asarray(clusters), return_inverse=True)
    places = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    estimate = float(statistic(np.arange(len(codes))))
    if len(names) < 2:
        return Interval(estimate, np.nan, np.nan, len(codes))
    rng = np.random.default_rng(seed)
    draws = np.array(
        [
            statistic(
                np.concatenate([places[k] for k in rng.integers(len(names), size=len(names))])
            )
            for _ in range(resamples)
        ]
    )
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return Interval(estimate, np.nan, np.nan, len(codes))
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), len(codes))


def auc(truth: np.ndarray, score: np.ndarray) -> float:
    """Return the area under the ROC curve, ties counted half; NaN without both kinds.

    >>> auc([1, 0, 0], [0.9, 0.1, 0.9])
    0.75
    """
    truth = np.asarray(truth, dtype=bool)
    yes, no = int(truth.sum()), int((~truth).sum())
    if not yes or not no:
        return np.nan
    return float((rankdata(score)[truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Return Spearman's correlation, NaN where one side does not vary."""
    a, b = rankdata(one), rankdata(other)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(np.corrcoef(a, b)[0, 1])


def kendall(one: np.ndarray, other: np.ndarray) -> float:
    """Return Kendall's tau-b, NaN where one side does not vary.

    >>> round(kendall([1, 2, 3, 4], [1, 2, 4, 3]), 4)
    0.6667
    """
    a, b = (np.sign(np.subtract.outer(side, side)) for side in map(np.asarray, (one, other)))
    return (
        float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))
        if a.any() and b.any()
        else np.nan
    )


def calibration_error(truth: np.ndarray, probability: np.ndarray, *, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equal width.

    The mean distance of a bin's mean probability from its share of yes, weighted by its rows.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian
    binning, section on calibration measures.
    """
    truth, probability = np.asarray(truth, dtype=float), np.asarray(probability, dtype=float)
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gaps = np.bincount(place, truth - probability, bins)
    return float(np.abs(gaps).sum() / len(truth))


def worth(
    frame: pd.DataFrame, *, level: float = 0.95, resamples: int = 500, seed: int = 0
) -> pd.DataFrame:
    """Return how far predictions agree with verdicts.

    Parameters
    ----------
    frame : DataFrame
        With system, question_id, correct, completeness, probability, predicted_completeness.
    level, resamples, seed
        As in `clustered`.

    Returns
    -------
    DataFrame
        One row a metric: metric, value, low, high, n. ROC AUC and accuracy (at one half) of the
        probability, Spearman's correlation of completeness, Brier score, expected calibration
        error, Kendall's tau of the systems' ranks by mean verdict and by mean probability, and by
        share of probabilities over one half.
    """
    truth = frame["correct"].to_numpy(float)
    score = frame["probability"].to_numpy(float)
    share = frame["completeness"].to_numpy(float)
    predicted = frame["predicted_completeness"].to_numpy(float)
    system = np.unique(frame["system"], return_inverse=True)[1]

    def tau(rows, score):
        size = np.maximum(np.bincount(system[rows]), 1)
        means = [np.bincount(system[rows], part[rows]) / size for part in (truth, score)]
        return kendall(*means)

    measures = {
        "ROC AUC": lambda rows: auc(truth[rows], score[rows]),
        "accuracy": lambda rows: np.mean((score[rows] >= 0.5) == truth[rows]),
        "Spearman, completeness": lambda rows: spearman(share[rows], predicted[rows]),
        "Brier": lambda rows: np.mean((score[rows] - truth[rows]) ** 2),
        "ECE": lambda rows: calibration_error(truth[rows], score[rows]),
        "tau, mean probability": lambda rows: tau(rows, score),
        "tau, share of yes": lambda rows: tau(rows, (score >= 0.5).astype(float)),
    }
    table = []
    for metric, measure in measures.items():
        found = clustered(
            frame["question_id"], measure, level=level, resamples=resamples, seed=seed
        )
        table.append((metric, *found))
    return pd.DataFrame(table, columns=["metric", "value", "low", "high", "n"])


def calibration_curve(frame: pd.DataFrame, *, bins: int = BINS) -> pd.DataFrame:
    """Return the share of correct answers by probability: probability, correct, n of each bin."""
    place = np.minimum((frame["probability"] * bins).astype(int), bins - 1)
    return (
        frame.groupby(place)
        .agg(
            probability=("probability", "mean"),
            correct=("correct", "mean"),
            n=("correct", "size"),
        )
        .reset_index(drop=True)
    )


def variance_shares(frame: pd.DataFrame, *, column: str = "correct") -> dict[str, float]:
    """Return which shares of the verdicts' variance question, system and single answer have.

    Parameters
    ----------
    frame : DataFrame
        One judge's verdicts: system, question_id and `column`. Questions that not every system
        answered are left out.

    Returns
    -------
    dict of str to float
        question, system, answer: components of variance of the two-way layout without
        replication, negative estimates taken as 0, as shares of their sum. `answer` is what is
        left: the answer itself, and the judge's noise.

    References
    ----------
    Searle, Casella and McCulloch (1992), Variance Components, section 4.7.
    """
    grid = frame.pivot(index="question_id", columns="system", values=column).dropna()
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


def concordance(frame: pd.DataFrame, *, resamples: int = 500, seed: int = 0) -> Interval:
    """Return how often the accepted of two answers to one question is the more probable one.

    Over all pairs of answers to the same question with different verdicts; equal probabilities
    count half. One half is what a judge gives that accepts and rejects answers to a question
    without regard to what the probability sees in them; what makes a question easy plays no part.

    Parameters
    ----------
    frame : DataFrame
        One judge's verdicts: question_id, correct, probability.
    resamples, seed
        As in `clustered`.

    Returns
    -------
    Interval
        With n pairs.
    """
    names, pairs = [], []
    for name, group in frame.groupby("question_id"):
        yes = group.loc[group["correct"], "probability"].to_numpy()
        no = group.loc[~group["correct"], "probability"].to_numpy()
        gap = np.sign(yes[:, None] - no[None, :]).ravel()
        names += [name] * len(gap)
        pairs.append((gap + 1) / 2)
    if not names:
        raise DataError("no two answers to one question have different verdicts")
    values = np.concatenate(pairs)
    return clustered(names, lambda rows: values[rows].mean(), resamples=resamples, seed=seed)


def reading(frame: pd.DataFrame, *, resamples: int = 500, seed: int = 0) -> pd.DataFrame:
    """Return what speaks for and against a judge having read the answers and the gold answers.

    Parameters
    ----------
    frame : DataFrame
        Rows of `judged_answers` on answerable questions, with probability.
    resamples, seed
        As in `clustered`.

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
        truth, score = other["correct"].to_numpy(), other["probability"].to_numpy()
        found = clustered(
            other["question_id"],
            lambda rows, truth=truth, score=score: auc(truth[rows], score[rows]),
            resamples=resamples,
            seed=seed,
        )
        repeated = group[group.duplicated(["question_id", "answer"], keep=False)]
        verdicts = repeated.groupby(["question_id", "answer"])["correct"].nunique()
        rows.append(
            {
                "judge": judge,
                "accepted": group["correct"].mean(),
                "accepted_abstaining": group.loc[silent, "correct"].mean(),
                "accepted_other": other["correct"].mean(),
                "auc_other": found.estimate,
                "low": found.low,
                "high": found.high,
                "concordance": concordance(group, resamples=1).estimate,
                **variance_shares(group),
                "same_text": (verdicts == 1).mean(),
            }
        )
    return pd.DataFrame(rows)


def twice(frame: pd.DataFrame, one: str, other: str) -> dict[str, float]:
    """Return how far two judges agree on the same answers: the most that a third can reach.

    Parameters
    ----------
    frame : DataFrame
        Rows of `judged_answers`.
    one, other : str
        Two judges in it.

    Returns
    -------
    dict
        answers (the same text from the same system), agreement, auc of the one's verdicts for the
        other's, spearman of completeness.
    """
    keys = ["system", "question_id", "answer"]
    both = frame[frame["judge"] == one].merge(frame[frame["judge"] == other], on=keys)
    return {
        "answers": len(both),
        "agreement": float((both["correct_x"] == both["correct_y"]).mean()),
        "auc": auc(both["correct_x"], both["correct_y"].astype(float)),
        "spearman": spearman(both["completeness_x"], both["completeness_y"]),
    }


def standings(
    frame: pd.DataFrame, columns: dict[str, str], *, resamples: int = 500, seed: int = 0
) -> pd.DataFrame:
    """Return each system's mean of some columns with an interval over questions.

    Parameters
    ----------
    frame : DataFrame
        With judge, system, question_id and the columns.
    columns : dict of str to str
        Column to the name that its row gets, formatted with the row's judge.
    resamples, seed
        As in `clustered`.

    Returns
    -------
    DataFrame
        scale (the name), system, value, low, high, n.
    """
    rows = []
    for (judge, system), group in frame.groupby(["judge", "system"], sort=False):
        for column, name in columns.items():
            values = group[column].to_numpy(float)
            found = clustered(
                group["question_id"],
                lambda rows, values=values: values[rows].mean(),
                resamples=resamples,
                seed=seed,
            )
            rows.append((name.format(judge=judge), system, *found))
    return pd.DataFrame(rows, columns=["scale", "system", "value", "low", "high", "n"])


def by_type(
    frame: pd.DataFrame, types: pd.Series, *, resamples: int = 500, seed: int = 0
) -> pd.DataFrame:
    """Return the ROC AUC against each judge by type of question.

    Parameters
    ----------
    frame : DataFrame
        With judge, question_id, correct, probability.
    types : Series
        Type by question_id.
    resamples, seed
        As in `clustered`.

    Returns
    -------
    DataFrame
        type, system (the judge), value (NaN where all answers have one verdict), low, high, n
        (questions).
    """
    rows = []
    for (kind, judge), group in frame.groupby([frame["question_id"].map(types), "judge"]):
        truth, score = group["correct"].to_numpy(), group["probability"].to_numpy()
        found = clustered(
            group["question_id"],
            lambda rows, truth=truth, score=score: auc(truth[rows], score[rows]),
            resamples=resamples,
            seed=seed,
        )
        rows.append((kind, judge, *found[:3], group["question_id"].nunique()))
    return pd.DataFrame(rows, columns=["type", "system", "value", "low", "high", "n"])
