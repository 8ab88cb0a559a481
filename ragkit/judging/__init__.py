"""Judging answers: EnterpriseRAG-Bench's harness, WixQA's and LiveRAG's judged metrics.

>>> from ragkit import datasets
>>> from ragkit.judging import evaluate, load_judge, read
>>> asked = datasets.load("enterpriserag_bench").questions.head(2)
>>> answers = asked[["question_id", "answer"]].assign(system="gold", doc_ids=asked["gold_doc_ids"])
>>> report = evaluate(asked, answers, load_judge("offline"), out="report.json")
>>> report.summary.query("group == 'overall'")[["metric", "value", "n"]].head(2)
        metric  value  n
0     answered    1.0  2
1  correctness    1.0  2
>>> read("report.json").summary.equals(report.summary)
True

`load_judge("openai:gpt-4o", ledger="build/llm.sqlite")` is a model as judge.

A judge is anything with the interface `Judge`. A verdict that it fails to give is missing: it is
counted, and it is never 0.
"""

from ragkit.judging.case import Options
from ragkit.judging.goldset import review
from ragkit.judging.harness import compare, estimate, evaluate
from ragkit.judging.inputs import read_answers, read_questions
from ragkit.judging.judges import Judge, ModelJudge, Task, Verdict, ask, tasks
from ragkit.judging.offline import load_judge
from ragkit.judging.report import Comparison, Evaluation, aggregate, agreement, read
