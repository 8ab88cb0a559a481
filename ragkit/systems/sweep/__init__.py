"""Sweeps: systems declared in one file, run on questions, and scored.

>>> from ragkit.systems import sweep
>>> systems = sweep.load("notebooks/systems.toml")
>>> result = sweep.run(systems, documents, questions, jobs=2)
>>> result.summary(), result.scores("token_f1")
"""

from __future__ import annotations

from ragkit.systems.sweep.result import Sweep
from ragkit.systems.sweep.running import free, plan, run, sample_scores, sample_systems
from ragkit.systems.sweep.sizes import LSA, Scaling, Tested, scaling, slopes
from ragkit.systems.sweep.systems import System, load, select

__all__ = ["LSA", "Scaling", "Sweep", "System", "Tested", "free", "load", "plan", "run"]
__all__ += ["sample_scores", "sample_systems", "scaling", "select", "slopes"]
