"""Metrics, statistics, diversity and the geometry of a corpus."""
