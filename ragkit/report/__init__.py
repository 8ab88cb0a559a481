"""Figures, tables and results of the notebooks, and the pipeline that runs them."""
