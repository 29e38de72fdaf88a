"""The names of the methods that write their own answers; the controls on scores have names of their own."""

from __future__ import annotations

from unprior.baselines.focus_on_vision import FocusOnVision
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.vcd import VCD

METHODS = (FocusOnVision, VCD, MFCD, PAI, NoLan)
"""In the order of the paper's table, with the paper's settings; REVIS needs vectors and is made by its own fit."""
