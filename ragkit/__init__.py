"""ragkit: load, measure and compare benchmarks of retrieval-augmented generation.

The package is a thin library under ordered notebooks. Import the room you need::

    from ragkit import datasets

    from ragkit.measures import diversity

    from ragkit.report import figures, tables

Nothing heavy (torch, spaCy, umap) is imported before it is used.
"""

__version__ = "0.1.0"
