"""Numbers of the search for answers to open questions; apart, because the command line needs them before all else."""

BEAMS = 8
"""Width of the search with the image: wide enough that so many different answers are left after merging forms."""
TEXT_BEAMS = 4
"""Width of the search without the image, of which only the best answer is taken."""
CANDIDATES = 4
"""Different answers that are kept (K)."""
