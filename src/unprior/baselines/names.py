"""The names of all methods, as the command line knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unprior.baselines.controls import CONTROLS
from unprior.baselines.focus_on_vision import FocusOnVision
from unprior.baselines.method import Method
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.vcd import VCD
from unprior.errors import UnpriorError, did_you_mean

ALL = "all"
REVIS_NAME = "revis"
RELEASED_REVIS_NAME = "revis-2.5"
DECODED: dict[str, type[Method] | None] = {
    FocusOnVision.name: FocusOnVision,
    VCD.name: VCD,
    MFCD.name: MFCD,
    PAI.name: PAI,
    REVIS_NAME: None,  # needs vectors, which are fitted to the model
    RELEASED_REVIS_NAME: None,
    NoLan.name: NoLan,
}
"""Methods that write their own answers, in the order of the paper's table, with the paper's settings."""


class Chosen(NamedTuple):
    """Methods by what they need: a model to ask, or scores alone."""

    decoded: tuple[str, ...]
    controls: tuple[str, ...]


def split_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names as people write them: with commas or without, in any case.

    >>> split_names(["VCD,nolan", "pai"])
    ('vcd', 'nolan', 'pai')
    """
    return tuple(part.strip().lower() for name in names for part in name.split(",") if part.strip())


def choose_methods(names: Sequence[str]) -> Chosen:
    """Sort names into methods that ask the model and controls on its scores; ``all`` stands for every one.

    >>> choose_methods(["nolan", "cfg-score", "vcd"])
    Chosen(decoded=('vcd', 'nolan'), controls=('cfg-score',))
    """
    known = [*DECODED, *CONTROLS]
    given = split_names(names)
    for name in given:
        if name not in (ALL, *known):
            like = did_you_mean(name, known)
            raise UnpriorError(f"no method {name!r}{like}; choose {ALL}, or some of {', '.join(known)}")
    wanted = set(known if ALL in given else given)
    return Chosen(tuple(name for name in DECODED if name in wanted), tuple(name for name in CONTROLS if name in wanted))
