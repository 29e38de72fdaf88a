"""Calibrated decisions behind an HTTP API that people already call, and a page to see them happen."""
