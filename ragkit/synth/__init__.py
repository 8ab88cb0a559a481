"""Generated companies, help centres and questions.

`generate` is the offline author: any number of documents that state drawn facts, in the layout of
EnterpriseRAG-Bench, for scaling, for tests and for machines without a model. `ragkit.synth.company`,
`.helpcentre` and `.datamorgana` let a language model write, as the three papers do.

>>> from ragkit.synth import generate
>>> made = generate("company", documents=500, seed=7, questions=10)
"""

from ragkit.synth.offline.generate import cached_company, generate, stream
from ragkit.synth.offline.plan import Settings

__all__ = ["Settings", "cached_company", "generate", "stream"]
