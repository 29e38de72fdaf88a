"""Models that transformers loads into this process."""
