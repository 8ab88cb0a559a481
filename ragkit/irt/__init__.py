"""Item response models of scores: the continuous-Bernoulli 2PL and its relatives.

>>> from ragkit import irt
>>> made = irt.simulate(20, 50, seed=1)
>>> result = irt.fit(made.scores)
>>> result.items.columns[:2].tolist()
['diff', 'disc']

===================  ==========================================================
fit                  scores to an `IRTResult`: engines map, em, nuts, py-irt
simulate             scores with known truth
load                 a saved result
link                 two fits that share items on one scale
recovery             simulate, fit, compare with the truth
agreement            several fits of the same scores
correlations         of difficulty with mean score and discrimination
split_half           reliability
prior_sensitivity    refits under other priors
heldout              models compared on cells they did not see
compare_readings     likelihoods compared on such cells, on the scale of the scores
crps                 how well a fit's distribution foretells scores
nearest              scores moved to a few levels, for graded models
posterior_predictive what the model would have made, beside what was seen
item_fit             observed and expected scores over ability
loo                  PSIS leave-one-out with Pareto k
===================  ==========================================================
"""

from ragkit.irt.compare import compare_readings, crps, nearest
from ragkit.irt.data import Scores, prepare
from ragkit.irt.diagnostics import (
    agreement,
    chain_summary,
    correlations,
    heldout,
    item_fit,
    loo,
    posterior_predictive,
    prior_sensitivity,
    recovery,
    split_half,
)
from ragkit.irt.engine import Prior
from ragkit.irt.fitting import ENGINES, fit
from ragkit.irt.likelihood import Bernoulli, ContinuousBernoulli, get_likelihood
from ragkit.irt.linking import Link, link
from ragkit.irt.result import IRTResult, load
from ragkit.irt.simulate import Simulation, simulate

__all__ = [
    "ENGINES",
    "Bernoulli",
    "ContinuousBernoulli",
    "IRTResult",
    "Link",
    "Prior",
    "Scores",
    "Simulation",
    "agreement",
    "correlations",
    "chain_summary",
    "compare_readings",
    "crps",
    "fit",
    "get_likelihood",
    "heldout",
    "item_fit",
    "link",
    "load",
    "loo",
    "nearest",
    "posterior_predictive",
    "prepare",
    "prior_sensitivity",
    "recovery",
    "simulate",
    "split_half",
]
