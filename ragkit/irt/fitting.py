"""`fit`: one function for three engines."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version

import numpy as np
import pandas as pd

from ragkit.checks import choice, number, options, whole
from ragkit.errors import DataError, UsageError
from ragkit.irt.data import Scores, prepare, quoted
from ragkit.irt.engine import Estimates, fit_em
from ragkit.irt.likelihood import LIKELIHOODS, MOST_LEVELS, get_likelihood
from ragkit.irt.marginal import Prior, Setup
from ragkit.irt.nuts import fit_nuts
from ragkit.irt.pyirt import fit_pyirt
from ragkit.irt.result import Z90, IRTResult, reliability

FEW = 5
ENGINES = {"em": fit_em, "nuts": fit_nuts, "py-irt": fit_pyirt}
PACKAGES = dict.fromkeys(ENGINES, ("ragkit", "numpy", "scipy"))
PACKAGES["nuts"] += ("torch", "pyro-ppl")
PACKAGES["py-irt"] += ("torch", "pyro-ppl", "py-irt")
PRIORS = ("weak", "hierarchical", "none")
KNOWN = {
    "model": ("1pl", "2pl"),
    "likelihood": (*LIKELIHOODS, "graded"),
    "disc": ("positive", "signed"),
    "engine": ENGINES,
}


def fit(
    scores: pd.DataFrame,
    model: str = "2pl",
    likelihood: str = "cb",
    disc: str = "positive",
    engine: str = "em",
    score_range: tuple[float, float] = (0, 1),
    seed: int = 0,
    *,
    prior: str | Prior = "weak",
    group: str | None = None,
    disconnected: str = "raise",
    levels: Sequence[float] | None = None,
    **given,
) -> IRTResult:
    """Fit an item response model to scores.

    The expected score of subject i on item j rises with a_j (theta_i - b_j): theta is ability, b
    difficulty (higher is harder) and a discrimination (the LiveRAG paper, section 3, equations 1
    and 2).

    Parameters
    ----------
    scores : pandas.DataFrame
        Long: `subject_id`, `item_id`, `score`, one row per score; or wide: subjects in the index,
        items in the columns, NaN for missing. The frame is not changed. Memory grows with
        subjects x items, scores that are missing included.
    model : {"2pl", "1pl"}
        "1pl" gives all items one discrimination.
    likelihood : {"cb", "bernoulli", "fractional", "graded"}
        "cb" is the paper's continuous Bernoulli, a density without a mode at scores of exactly 0
        or 1. "bernoulli" takes only the two ends of the range. "fractional" is a quasi-likelihood
        for any scores in the range: see `Fractional`. "graded" gives each of a few ordered levels
        a probability (Samejima's graded response model, GRM).
    disc : {"positive", "signed"}
        Whether a discrimination may be negative.
    engine : {"em", "nuts", "py-irt"}
        "em": marginal maximum a posteriori with abilities integrated out, EAP abilities and errors
        from the observed information (see `ragkit.irt.engine`); under a second at LiveRAG's size.
        "nuts": the whole posterior under the same priors, the reference; minutes.
        "py-irt": the LiveRAG paper's route, stochastic variational inference; a minute.
    score_range : (low, high)
        The range of the scores, mapped linearly to [0, 1]. A score outside raises.
    seed : int
        Of "nuts" and "py-irt"; "em" draws nothing.
    prior : {"weak", "hierarchical", "none"} or Prior
        "weak" is fixed and weakly informative: see `ragkit.irt.Prior`. "hierarchical" estimates
        its means and sds, which can fail on scores that say little of them. "none" is marginal
        maximum likelihood (MML). The last two are for "em"; py-irt has priors of its own.
    group : str, optional
        A column that names the judge or condition of each score; its severities are estimated
        (engines "em" and "nuts").
    disconnected : {"raise", "assume-equal"}
        What to do with parts of the design that share no subject and no item.
    levels : sequence of float, optional
        For "graded": the values that a score can take, ascending. The distinct scores by default.
    **given
        Options of the engine. "em": max_iter. "nuts": draws, warmup, chains. "py-irt": epochs,
        lr, dropout.

    Returns
    -------
    IRTResult

    Raises
    ------
    UsageError
        An unknown name or option, a range that is no interval, or what the engine cannot fit.
    DataError
        A missing column; an empty id; a score that is not a number, not finite or out of range; a
        repeated cell; fewer than two subjects or items; scores that are all the same, or that the
        likelihood does not take; parts without a shared item. The message names the row (from 1),
        subject and item.

    Examples
    --------
    >>> from ragkit import irt
    >>> simulated = irt.simulate(20, 50, seed=1)
    >>> result = irt.fit(simulated.scores)
    >>> result.converged
    True
    """
    asked = {"model": str(model).lower(), "likelihood": likelihood, "disc": disc}
    asked |= {"engine": str(engine).lower(), "seed": whole(seed, "seed", least=0)}
    run = _engine(asked, given, prior=prior, group=group, levels=levels)
    data = prepare(
        scores,
        score_range=score_range,
        likelihood=likelihood,
        group=group,
        disconnected=disconnected,
    )
    if likelihood == "graded":
        levels = _levels(data, levels)
    family = get_likelihood(likelihood, levels, data.score_range)
    kind = {"shared": asked["model"] == "1pl", "positive": disc == "positive"}
    filled = _prior(prior, data, family, **kind)
    setup = Setup(family, *kind.values(), filled, prior == "hierarchical", asked["seed"])
    begin = time.perf_counter()
    found = run(data, setup, **given)
    asked |= {"score_range": [float(end) for end in data.score_range], "group": group}
    asked |= {"prior": prior if isinstance(prior, str) else asdict(filled)}
    asked |= {"levels": family.values} if likelihood == "graded" else {}
    found.info = {
        **asked,
        "converged": not found.info["problems"],
        "ability_prior": [0.0, 1.0],
        "hyperparameters": {} if filled is None else asdict(filled),
        "n_scores": int(data.n_cells),
        "seconds": time.perf_counter() - begin,
        "notes": [],
        **found.info,
        "versions": {name: version(name) for name in PACKAGES[asked["engine"]]},
    }
    return _result(data, found, signed=not kind["positive"])


def _engine(asked: Mapping, given: Mapping, *, prior, group, levels) -> Callable:
    """Return the function of an engine, or raise where a name is unknown or it cannot do this."""
    for name, known in KNOWN.items():
        choice(asked[name], name, known)
    engine, graded = asked["engine"], asked["likelihood"] == "graded"
    known = inspect.signature(ENGINES[engine]).parameters.values()
    options(given, [p.name for p in known if p.kind is p.KEYWORD_ONLY], f"engine {engine!r}")
    own = engine == "py-irt"  # it has priors of its own, and no judges
    cannot = {
        "likelihood='graded'": engine != "em" and graded,
        f"prior={prior!r}": engine != "em" and (prior in PRIORS[1:] or own and prior != "weak"),
        f"group={group!r}": own and group is not None,
    }
    for what, so in cannot.items():
        if so:
            raise UsageError(f"engine {engine!r} cannot fit {what}", "use engine='em'")
    if levels is not None and not graded:
        raise UsageError("levels are for likelihood='graded'")
    return ENGINES[engine]


def _levels(data: Scores, levels: Sequence[float] | None) -> Sequence[float]:
    """Return the declared levels of graded scores, or the scores' distinct values."""
    if levels is not None:
        return levels
    found = data.unscaled(np.unique(data.cells()[2]))
    if len(found) > MOST_LEVELS:
        raise DataError(
            f"the scores take {len(found):,} distinct values, too many for a graded model",
            f"round them to at most {MOST_LEVELS} levels, or use likelihood='fractional'",
        )
    return found


def _prior(
    prior: str | Prior, data: Scores, family, *, positive: bool, shared: bool
) -> Prior | None:
    if isinstance(prior, Prior):
        filled = prior.filled(positive=positive, shared=shared)
        for name in ("diff_sd", "disc_sd"):
            if not number(getattr(filled, name), f"Prior({name})", least=0):
                raise UsageError(f"Prior({name}) should be positive, found 0")
        return filled
    if choice(prior, "prior", PRIORS) != "none":
        return Prior().filled(positive=positive, shared=shared)
    if family.graded and not (seen := family.statistics(data.x).any(2)).all():
        item, level = np.argwhere(~seen)[0]
        raise DataError(
            f"the item {quoted(data.items, item)} never got the score {family.values[level]:g}: "
            "without a prior its thresholds are not finite",
            "use prior='weak'",
        )
    ends = (data.per_item("max") == 0) | (data.per_item("min") == 1)
    if ends.any():
        raise DataError(
            f"the item {quoted(data.items, ends.argmax())} has the same extreme score everywhere: "
            "without a prior it has no finite difficulty",
            "use prior='weak'",
        )
    return None


# --- the result -------------------------------------------------------------------------------


def _result(data: Scores, found: Estimates, *, signed: bool) -> IRTResult:
    parts = {name: (mean, np.sqrt(var)) for name, (mean, var) in found.moments.items()}
    (theta, se_theta), (diff, se_diff), (alpha, se) = list(parts.values())[:3]
    with np.errstate(invalid="ignore", divide="ignore"):
        if signed:
            negative, disc, se_disc = alpha + Z90 * se < 0, alpha, se
            log_disc = np.log(np.where(disc > 0, disc, np.nan))
            se_log = np.where(disc > 0, se / disc, np.nan)
        else:
            negative, log_disc, se_log = _runs_backwards(data, theta), alpha, se
            disc = np.exp(alpha)
            se_disc = disc * se
    columns = {"diff": diff, "disc": disc}
    columns |= {f"threshold_{k + 1}": column for k, column in enumerate(found.thresholds)}
    columns |= {"log_disc": log_disc, "se_diff": se_diff, "se_disc": se_disc, "se_log_disc": se_log}
    items = _table(data, data.per_item, data.items.rename("item_id"), columns, negative=negative)
    columns = {"theta": theta, "se_theta": se_theta}
    subjects = _table(data, data.per_subject, data.subjects.rename("subject_id"), columns)
    facets = _facets(data, *parts["severity"]) if data.n_groups else None
    found.info["reliability"] = reliability(subjects)
    notes = found.info["notes"]
    if data.parts > 1:
        notes.append(
            f"{data.parts} parts share no subject or item: they are on one scale only if their "
            "subjects are equally able on average"
        )
    if facets is not None and facets["flag"].str.contains("nested").any():
        notes.append(
            "some judges share no subject with another judge: their severity is identified only "
            "by assuming that the groups of subjects are equally able"
        )
    result = IRTResult(items, subjects, found.info, facets, found.draws, data)
    if "log_likelihood" not in found.info:  # an engine that does not integrate abilities out
        found.info["log_likelihood"] = float(result.pointwise().sum())
    return result


def _runs_backwards(data: Scores, theta: np.ndarray) -> np.ndarray:
    """Return which items' scores fall with ability: a one-sided test of correlation at 5 %."""
    n, seen, x = data.per_item("count"), np.isfinite(data.x), np.nan_to_num(data.x)
    square, cross = np.einsum("ji,ji->j", x, x), x @ theta.astype(x.dtype)
    x, ability, ability_square = x.sum(1), seen @ theta, seen @ theta**2
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (square - x**2 / n) * (ability_square - ability**2 / n)
        r = np.clip((cross - x * ability / n) / np.sqrt(spread), -1 + 1e-12, 1 - 1e-12)
        return (spread > 1e-20) & (n >= FEW) & (np.arctanh(r) * np.sqrt(n - 3) < -Z90)


def _table(data: Scores, per: Callable, index: pd.Index, columns: dict, **masks) -> pd.DataFrame:
    """Return the parameters of items or subjects, with what their scores are and their flags."""
    n = per("count")
    masks = {"constant": per("min") == per("max"), **masks, "few": n < FEW}
    masks["disconnected"] = np.full(len(n), data.parts > 1)
    told = {"n": n, "mean_score": data.unscaled(per("mean")), "flag": _flags(**masks)}
    return pd.DataFrame({**columns, **told}, index)


def _flags(**masks: np.ndarray) -> np.ndarray:
    table = pd.DataFrame(masks)
    return table.dot(table.columns + " ").str.strip().to_numpy()


def _facets(data: Scores, severity: np.ndarray, error: np.ndarray) -> pd.DataFrame:
    pairs = pd.DataFrame({"subject": data.cells()[0], "group": data.group}).drop_duplicates()
    overlap = pairs.duplicated("subject", keep=False).groupby(pairs["group"]).any().to_numpy()
    table = pd.DataFrame({"severity": severity, "se_severity": error}, data.groups.rename("group"))
    return table.assign(
        n=np.bincount(data.group),
        n_subjects=np.bincount(pairs["group"]),
        flag=_flags(nested=~overlap),
    )
