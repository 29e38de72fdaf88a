"""Whole runs: their configuration, their folder, and the way from a model to a report."""
