"""Figures of the notebooks, each from frames to one figure.

In rooms by what they show; the common ones are here by their names, those of generation, of
generated questions and of scaling under `plots.generation`, `plots.questions` and `plots.scaling`.
"""

from ragkit.report.plots.corpus import corpus_explorer, corpus_maps, corpus_similarity, corpus_sweep
from ragkit.report.plots.data import (
    article_types,
    coverage,
    question_types,
    rows_at_hand,
    token_lengths,
)
from ragkit.report.plots.judges import judge_calibration, judge_damage, judge_standings, judge_worth
from ragkit.report.plots.language import diversity, lengths, question_map
from ragkit.report.plots.retrieval import by_type, first_ranks, overlap, ranking, recalls, type_map
from ragkit.report.plots.scoreboard import differences, statuses

from ragkit.report.plots import generation, questions, scaling  # isort: skip

__all__ = [
    "article_types",
    "by_type",
    "corpus_explorer",
    "corpus_maps",
    "corpus_similarity",
    "corpus_sweep",
    "coverage",
    "differences",
    "diversity",
    "first_ranks",
    "generation",
    "judge_calibration",
    "judge_damage",
    "judge_standings",
    "judge_worth",
    "lengths",
    "overlap",
    "question_map",
    "question_types",
    "questions",
    "ranking",
    "recalls",
    "rows_at_hand",
    "scaling",
    "statuses",
    "token_lengths",
    "type_map",
]
