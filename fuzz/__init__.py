"""Fuzz tests: changed inputs for the public entry points, and what may not come of them."""
