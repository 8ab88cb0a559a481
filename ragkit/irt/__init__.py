"""Item response models of scores: the continuous-Bernoulli 2PL and its relatives.

>>> from ragkit import irt
>>> simulated = irt.simulate(20, 50, seed=1)
>>> result = irt.fit(simulated.scores)
>>> result.items.columns[:2].tolist()
['diff', 'disc']
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
from ragkit.irt.fitting import fit
from ragkit.irt.itemfit import item_fit, q3
from ragkit.irt.likelihood import get_likelihood
from ragkit.irt.linking import Link, link
from ragkit.irt.marginal import Prior
from ragkit.irt.result import IRTResult, load
from ragkit.irt.short_form import ShortForm, check_short_forms, load_short_form, short_form
from ragkit.irt.simulate import Simulation, simulate
