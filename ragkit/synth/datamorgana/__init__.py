"""DataMorgana: questions of configured kinds about the documents of a folder (LiveRAG, section 2).

A model answers the stages; which kinds of questions it asks, and how often, a file says.

>>> from ragkit import paths
>>> from ragkit.synth.datamorgana import estimate, make_questions
>>> documents = paths.SAMPLE / "enterpriserag_bench"
>>> asked = {"questions": 50, "seed": 7, "author": "openai:gpt-4o"}
>>> said = estimate(documents, **asked)  # what it asks and costs
>>> said[0], said[-1]
('320 documents, 50 questions; requests:', 'openai:gpt-4o: about ... calls, ... about $...')
>>> make_questions(documents, **asked).write("build/questions.jsonl")  # doctest: +SKIP
"""

from ragkit.synth.datamorgana.config import Config, load_config
from ragkit.synth.datamorgana.make import Benchmark, estimate, make_questions

__all__ = ["Benchmark", "Config", "estimate", "load_config", "make_questions"]
