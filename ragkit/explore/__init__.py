"""Explorers for a notebook, each also a table or picture where no kernel runs."""

from ragkit.explore.pages import cards, documents, maps, questions
from ragkit.explore.systems import causes, corpus, pair
