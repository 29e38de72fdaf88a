"""The names of all methods, as the command line knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unprior.baselines.cad import CAD, MaskedCAD, StrongCAD, WiderMaskedCAD
from unprior.baselines.controls import CONTROLS
from unprior.baselines.focus_on_vision import FocusOnVision
from unprior.baselines.method import Method
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.vcd import VCD
from unprior.errors import UnpriorError, did_you_mean

ALL = "all"
"""Stands for the paper's methods and all controls."""
OPEN_GROUP = "open"
"""Stands for the decoders that are compared on open questions; see ``OPEN_METHODS``."""
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
"""The paper's methods that write their own answers, in the order of its table, with its settings."""
FURTHER: dict[str, type[Method]] = {kind.name: kind for kind in (CAD, StrongCAD, MaskedCAD, WiderMaskedCAD)}
"""Methods that the paper does not have; they run only where they are named."""
WRITING: dict[str, type[Method] | None] = {**DECODED, **FURTHER}
"""All methods that write their own answers."""
OPEN_METHODS = (VCD.name, PAI.name, NoLan.name, *FURTHER)
"""Decoders that are compared on open questions, beside plain greedy decoding, which each brings along."""


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
    """Sort names into methods that ask the model and controls on its scores.

    ``all`` stands for those of the paper, ``open`` for the decoders that are compared on open questions.

    >>> choose_methods(["nolan", "cfg-score", "vcd"])
    Chosen(decoded=('vcd', 'nolan'), controls=('cfg-score',))
    >>> choose_methods(["open"]).decoded
    ('vcd', 'pai', 'nolan', 'cad-0.5', 'cad-1', 'cad-mask-0.1', 'cad-mask-0.01')
    """
    known = [*WRITING, *CONTROLS]
    groups = {ALL: (*DECODED, *CONTROLS), OPEN_GROUP: OPEN_METHODS}
    given = split_names(names)
    for name in given:
        if name not in (*groups, *known):
            like = did_you_mean(name, [*groups, *known])
            raise UnpriorError(f"no method {name!r}{like}; choose {ALL}, {OPEN_GROUP}, or some of {', '.join(known)}")
    wanted = {member for name in given for member in groups.get(name, (name,))}
    return Chosen(tuple(name for name in WRITING if name in wanted), tuple(name for name in CONTROLS if name in wanted))
