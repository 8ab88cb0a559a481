"""A generated company: facts, then documents that state them, noise, and questions with answers.

EnterpriseRAG-Bench's generation framework (sections 3 and 4, appendices B and C), twice: `generate`
writes any number of documents from grammar and phrase banks; `ragkit.synth.company` lets a language
model write about a company of the user's.

>>> from ragkit.synth import World, generate
>>> world = World(seed=7, documents=2000)
>>> generate("build/company", documents=2000, seed=7)  # doctest: +SKIP

Main classes: `World` (subjects and the value of every fact), `Fact` (id, time,
subject, attribute, value, the documents that state it) and `Brief` (what a document has to say).
"""

from ragkit.synth.briefs import Brief, Point
from ragkit.synth.cached import cached_company, stream
from ragkit.synth.pipeline import Settings, generate
from ragkit.synth.streams import Stream
from ragkit.synth.world import Fact, Subject, World

__all__ = [
    "Brief",
    "Fact",
    "Point",
    "Settings",
    "Stream",
    "Subject",
    "World",
    "cached_company",
    "generate",
    "stream",
]
