"""Figures of the notebooks: frames in, one figure out.

One module a subject; import the one that is needed, such as
`from ragkit.report.plots.retrieval import ranking`. All figures have the style, colours and
markers of `ragkit.report.figures`, whose `save` writes them.
"""
