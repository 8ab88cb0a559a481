"""DataMorgana: questions of configured kinds about the documents of a folder (LiveRAG, section 2).

A model answers the stages; which kinds of questions it asks, and how often, a file says.

>>> from ragkit.synth.datamorgana import estimate, make_questions
>>> asked = {"questions": 50, "seed": 7, "author": "openai:gpt-4o"}
>>> estimate("data/sample/enterpriserag_bench", **asked)
['320 documents, 50 questions; requests:', ... about $...]
>>> make_questions("data/sample/enterpriserag_bench", **asked).write("q.jsonl")  # doctest: +SKIP
"""

from ragkit.synth.datamorgana.config import Config, load_config
from ragkit.synth.datamorgana.make import Benchmark, estimate, make_questions

__all__ = ["Benchmark", "Config", "estimate", "load_config", "make_questions"]
