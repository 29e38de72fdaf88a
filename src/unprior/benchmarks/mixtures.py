"""Mixtures of subcategories that a certificate can be made for: of a known benchmark, or from a file."""

from __future__ import annotations

import json
from pathlib import Path

from unprior._files import is_file, read_whole
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY, SUBCATEGORIES
from unprior.errors import UnpriorError

CDH_BENCH = "cdh-bench"


def read_mixture(name: str) -> dict[str, float]:
    """Share of every subcategory: of the test pairs of CDH-Bench, or as a JSON file says, such as ``{"Color": 2}``.

    >>> round(read_mixture("cdh-bench")["Color"], 4)
    0.087
    """
    if name == CDH_BENCH:
        tested = {subcategory: pairs - DEV_PAIRS_PER_SUBCATEGORY for _, subcategory, pairs in SUBCATEGORIES}
        return {subcategory: pairs / sum(tested.values()) for subcategory, pairs in tested.items()}
    path = Path(name)
    if not is_file(path):
        raise UnpriorError(
            f"target_mixture: {name} is neither {CDH_BENCH} nor a file; give a JSON file with a share for every "
            f'subcategory, such as {{"Color": 2, "Material": 1}}'
        )
    try:
        shares = json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:
        raise UnpriorError(f"{path}: not valid JSON ({error}); give a share for every subcategory by name") from None
    if (
        not isinstance(shares, dict)
        or not all(_is_share(share) for share in shares.values())
        or not sum(shares.values())
    ):
        raise UnpriorError(
            f'{path}: give a share of at least 0 for every subcategory by name, such as {{"Color": 2, "Material": 1}}'
        )
    return {str(subcategory): float(share) for subcategory, share in shares.items()}


def _is_share(share: object) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1e12
