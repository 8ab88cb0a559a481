"""Item response models of scores: the continuous-Bernoulli 2PL and its relatives.

>>> from ragkit import irt
>>> simulated = irt.simulate(20, 50, seed=1)
>>> result = irt.fit(simulated.scores)
>>> result.items.columns[:2].tolist()
['diff', 'disc']

====================  =========================================================
fit                   scores to an `IRTResult`: engines em, nuts, py-irt
simulate              scores with known parameters
load                  a saved result
link                  two fits that share items on one scale
recovery              simulate, fit, compare with the truth
converged             the fits that converged, and what is wrong with the others
agreement             several fits of the same scores
correlations          of difficulty with mean score and discrimination
split_half            reliability by halves of the items or subjects
prior_sensitivity     refits under other priors
heldout               models compared on cells they did not see
compare_likelihoods   likelihoods compared on such cells
crps                  accuracy of a predicted distribution of scores
nearest               scores moved to a few levels, for graded models
posterior_predictive  generated scores beside the observed ones
item_fit              infit, outfit and S-X2 of each item
q3                    local dependence of pairs of items
loo                   PSIS leave-one-out with Pareto k
short_form            the few items that estimate the full score best
check_short_forms     ways to choose items compared on left-out subjects
====================  =========================================================
"""

from ragkit.irt.compare import compare_likelihoods, crps, heldout, nearest
from ragkit.irt.diagnostics import (
    agreement,
    converged,
    correlations,
    loo,
    posterior_predictive,
    prior_sensitivity,
    recovery,
    split_half,
)
from ragkit.irt.engine import Prior
from ragkit.irt.fitting import fit
from ragkit.irt.itemfit import item_fit, q3
from ragkit.irt.likelihood import get_likelihood
from ragkit.irt.linking import Link, link
from ragkit.irt.result import IRTResult, load
from ragkit.irt.short_form import ShortForm, check_short_forms, load_short_form, short_form
from ragkit.irt.simulate import Simulation, simulate
