"""Score-level controls: other rules on the same scores, chosen on the same development rows by the same objective."""

from unprior.baselines.controls.catalogue import CONTROLS, run_controls
from unprior.baselines.controls.control import Control, ControlResult
from unprior.baselines.controls.proposals import GUIDANCE_SCALES, STRENGTHS, fixed_strength_answers, guided_answers

__all__ = [
    "CONTROLS",
    "GUIDANCE_SCALES",
    "STRENGTHS",
    "Control",
    "ControlResult",
    "fixed_strength_answers",
    "guided_answers",
    "run_controls",
]
