"""Scores simulated from known abilities and items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragkit.errors import UsageError
from ragkit.irt.data import interval
from ragkit.irt.likelihood import get_likelihood


@dataclass(frozen=True)
class Simulation:
    """Simulated scores and their true parameters.

    Attributes
    ----------
    scores : pandas.DataFrame
        Long: subject_id, item_id, score.
    items : pandas.DataFrame
        Indexed by item_id: diff, disc, log_disc.
    subjects : pandas.DataFrame
        Indexed by subject_id: theta, session.
    """

    scores: pd.DataFrame
    items: pd.DataFrame
    subjects: pd.DataFrame

    def __repr__(self) -> str:
        return (
            f"<Simulation of {len(self.subjects):,} subjects x {len(self.items):,} items, "
            f"{len(self.scores):,} scores>"
        )


def simulate(
    n_subjects: int = 40,
    n_items: int = 895,
    *,
    likelihood: str = "cb",
    diff_mean: float = 0.0,
    diff_sd: float = 1.75,
    log_disc_mean: float = 0.0,
    log_disc_sd: float = 0.5,
    negative: float = 0.0,
    sessions: int = 1,
    shared: int = 0,
    missing: float = 0.0,
    score_range: tuple[float, float] = (0, 1),
    seed: int = 0,
) -> Simulation:
    """Draw subjects, items and scores from the 2PL model.

    Over the subjects abilities have a mean of exactly 0 and an sd of exactly 1, the scale that `fit`
    reports. `simulate(sessions=2, shared=105)` has the size of the LiveRAG challenge: 895 questions,
    of which each of two sessions asked 500, 105 of them shared. The default spread of difficulty is
    that of the paper's quartiles (section 4): (0.236 + 2.143) / 1.349 is about 1.75. Numbers out of
    their ranges raise `UsageError`.

    Parameters
    ----------
    likelihood : {"cb", "bernoulli"}
    diff_mean, diff_sd, log_disc_mean, log_disc_sd : float
        Normal distributions of difficulty and of log discrimination.
    negative, missing : float
        Shares of items whose discrimination is reversed, and of cells left out at random.
    sessions : {1, 2}
        With 2, half of the subjects answer each session's items.
    shared : int
        Items asked in both sessions.
    score_range : (low, high)
        The range of the scores.

    Examples
    --------
    >>> simulated = simulate(20, 50, seed=1)
    >>> simulated.scores.shape, simulated.items.columns.tolist()
    ((1000, 3), ['diff', 'disc', 'log_disc'])
    """
    if n_subjects < 2 or n_items < 2:
        raise UsageError("a simulation needs at least 2 subjects and 2 items")
    if sessions not in (1, 2) or not 0 <= shared <= n_items:
        raise UsageError("sessions is 1 or 2, and shared at most the number of items")
    if not (0 <= missing < 1 and 0 <= negative <= 1):
        raise UsageError("missing and negative are shares: 0 <= missing < 1, 0 <= negative <= 1")
    family, (low, high) = get_likelihood(likelihood), interval(score_range)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_subjects)
    theta = (theta - theta.mean()) / theta.std()
    diff = rng.normal(diff_mean, diff_sd, n_items)
    log_disc = rng.normal(log_disc_mean, log_disc_sd, n_items)
    disc = np.where(rng.random(n_items) < negative, -1.0, 1.0) * np.exp(log_disc)
    session = 1 + np.arange(n_subjects) % sessions
    shared = shared if sessions == 2 else n_items
    only, place = (n_items - shared) // 2, np.arange(n_items)
    asked = np.where(session[:, None] == 1, place < only + shared, place >= only)
    if missing:
        asked = asked * (rng.random(asked.shape) >= missing)
    subject, item = np.nonzero(asked)
    x = family.sample(disc[item] * (theta[subject] - diff[item]), rng)
    subjects, items = _ids("subject_id", "s", n_subjects), _ids("item_id", "q", n_items)
    cells = {
        "subject_id": subjects[subject],
        "item_id": items[item],
        "score": np.clip(low + x * (high - low), low, high),
    }
    return Simulation(
        scores=pd.DataFrame(cells),
        items=pd.DataFrame({"diff": diff, "disc": disc, "log_disc": log_disc}, items),
        subjects=pd.DataFrame({"theta": theta, "session": session}, subjects),
    )


def _ids(name: str, letter: str, n: int) -> pd.Index:
    return pd.Index([f"{letter}{i:0{len(str(n - 1))}d}" for i in range(n)], name=name)
