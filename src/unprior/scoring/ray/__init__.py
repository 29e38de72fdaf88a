"""A scoring run on a Ray cluster."""
