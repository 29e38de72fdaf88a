"""From questions and an engine to a score table: what to ask, asking it, storing it, and what it costs."""
