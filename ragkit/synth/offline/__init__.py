"""The offline author: documents and questions from recorded facts, packs of phrases and forms.

packs.py reads the data, grammar.py renders, world.py draws subjects, plan.py hands out facts,
documents.py and stories.py say what each document states, questions.py asks, generate.py writes.
"""
