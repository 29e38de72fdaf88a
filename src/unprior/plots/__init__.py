"""The style of all figures, and what they are composed of."""
