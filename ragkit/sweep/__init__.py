"""Systems x questions: declared in one file, computed once, scored.

>>> from ragkit import sweep
>>> systems = sweep.load("notebooks/systems.toml")
>>> result = sweep.run(systems, documents, questions, out="build/sweep", jobs=2)
>>> result.summary(), result.scores("token_f1")
"""

from __future__ import annotations

from ragkit.sweep.lsa import LSA
from ragkit.sweep.result import Sweep
from ragkit.sweep.running import plan, run
from ragkit.sweep.sample import sample_scores, sample_systems
from ragkit.sweep.sizes import Scaling, Tested, scaling, slopes
from ragkit.sweep.systems import System, load, select

__all__ = [
    "LSA",
    "Scaling",
    "Sweep",
    "System",
    "Tested",
    "load",
    "plan",
    "run",
    "sample_scores",
    "sample_systems",
    "scaling",
    "select",
    "slopes",
]
