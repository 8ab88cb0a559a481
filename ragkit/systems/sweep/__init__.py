"""Sweeps: systems declared in one file, run on questions, and scored.

>>> from ragkit import datasets, paths
>>> from ragkit.systems import sweep
>>> wixqa = datasets.load("wixqa").part(documents=40, questions=5)
>>> systems = sweep.select(sweep.load(paths.NOTEBOOKS / "systems.toml"), ["bm25-titles"])
>>> sweep.plan(systems, wixqa.documents, wixqa.questions)["to_rank"].tolist()
[5]
>>> result = sweep.run(systems, wixqa.documents, wixqa.questions)
>>> result.summary().columns[:4].tolist()
['token_f1', 'rouge_1', 'rouge_2', 'R@1']
>>> result.scores("RR").columns.tolist()
['subject_id', 'item_id', 'metric', 'score']
>>> found = sweep.scaling(wixqa.documents, wixqa.questions, [20, 30, 40], {"bm25": "bm25"}, k=1)
>>> sweep.slopes(found.tested(n_resamples=99))[["system", "questions", "size"]]
  system  questions  size
0   bm25          5    40
>>> sweep.sample_scores().columns.tolist()  # of all small systems, on the embedded sample
['subject_id', 'item_id', 'score']
"""

from __future__ import annotations

from ragkit.systems.sweep.result import Sweep
from ragkit.systems.sweep.running import plan, run, sample_scores, sample_systems
from ragkit.systems.sweep.sizes import LSA, Scaling, Tested, scaling, slopes
from ragkit.systems.sweep.systems import System, load, select

__all__ = ["LSA", "Scaling", "Sweep", "System", "Tested", "load", "plan", "run"]
__all__ += ["sample_scores", "sample_systems", "scaling", "select", "slopes"]
