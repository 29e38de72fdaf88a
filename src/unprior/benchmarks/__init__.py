"""Benchmarks: questions about images, in one shape."""
