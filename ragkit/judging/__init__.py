"""Judging answers: EnterpriseRAG-Bench's harness, WixQA's and LiveRAG's judged metrics.

    >>> from ragkit.judging import evaluate, load_judge
    >>> judge = load_judge("openai:gpt-4o", ledger="build/llm.sqlite")  # doctest: +SKIP
    >>> report = evaluate("Q.jsonl", "A.jsonl", judge, out="R.json")  # doctest: +SKIP
    >>> report.summary  # doctest: +SKIP

A judge is anything with the interface `Judge`. A verdict that it fails to give is missing: it is
counted, and it is never 0.
"""

from ragkit.judging.agreement import agreement, krippendorff_alpha
from ragkit.judging.case import Options
from ragkit.judging.comparison import compare, preferred, swaps
from ragkit.judging.goldset import RULES, Review, classify, is_anti_hallucination, review
from ragkit.judging.harness import estimate, evaluate
from ragkit.judging.inputs import read_answers, read_documents, read_questions, strip_citations
from ragkit.judging.judges import (
    CLASSES,
    KINDS,
    Judge,
    ModelJudge,
    Task,
    Verdict,
    ask,
    combine,
    load_judge,
    unit_rating,
)
from ragkit.judging.report import (
    Comparison,
    Evaluation,
    aggregate,
    completeness,
    document_recall,
    invalid_extra_documents,
    leaderboard_score,
    read,
)

__all__ = [
    "CLASSES",
    "KINDS",
    "RULES",
    "Comparison",
    "Evaluation",
    "Judge",
    "ModelJudge",
    "Options",
    "Review",
    "Task",
    "Verdict",
    "aggregate",
    "agreement",
    "ask",
    "classify",
    "combine",
    "compare",
    "completeness",
    "document_recall",
    "estimate",
    "evaluate",
    "invalid_extra_documents",
    "is_anti_hallucination",
    "krippendorff_alpha",
    "leaderboard_score",
    "load_judge",
    "preferred",
    "read",
    "read_answers",
    "read_documents",
    "read_questions",
    "review",
    "strip_citations",
    "swaps",
    "unit_rating",
]
