"""DataMorgana: questions of configured kinds about the documents of a folder (LiveRAG, section 2).

>>> from ragkit.synth.datamorgana import make_questions
>>> made = make_questions("build/company", questions=895, seed=7)  # doctest: +SKIP
>>> made.write("build/questions.jsonl")                            # doctest: +SKIP

Without a language model the questions come from the facts that a generated company carries; with
`author="openai:MODEL"` from any folder with documents.jsonl.
"""

from ragkit.synth.datamorgana.config import Category, Config, load_config
from ragkit.synth.datamorgana.make import estimate, make_questions
from ragkit.synth.datamorgana.report import Benchmark

__all__ = ["Benchmark", "Category", "Config", "estimate", "load_config", "make_questions"]
