"""Which function gives our values for which table of the paper.

A study joins by a line here: a function from :class:`~unprior.studies.inputs.StudyInputs` to
:class:`~unprior.reproduction.cells.OwnCell` with the rows and columns of ``paper.json``.
"""

from __future__ import annotations

from unprior.reproduction import component_tables as parts
from unprior.reproduction import main_tables as main
from unprior.reproduction import refit_tables as refits
from unprior.reproduction.cells import Recomputer, each_model, spc

_EPSILONS = (0.0, 0.02, 0.04, 0.06, 0.10)

RECOMPUTERS: dict[str, Recomputer] = {
    "text:attraction": each_model(main.attraction),
    "tab:main": each_model(main.main),
    "tab:official-cdh-full": each_model(main.official),
    "text:third-model": each_model(main.third_model),
    "text:stable-ranges": parts.ranges,
    "tab:spc-primary-settings": each_model(main.settings("selected", 0.04)),
    "tab:primary-holm": main.tests,
    "tab:controlled": each_model(spc("SPC ε = .04", 0.04), spc("SPC ε = .10", 0.10, uncertainty=True)),
    "text:standard-wide": each_model(spc("SPC", 0.10), main.settings("selected", 0.10)),
    "text:uncertainty-wide": each_model(spc("SPC", 0.10, uncertainty=True)),
    "text:uncertainty-settings": each_model(
        *(main.settings(f"ε = {epsilon:.2f}", epsilon, uncertainty=True) for epsilon in _EPSILONS)
    ),
    "text:cfg-score": each_model(parts.guidance),
    "tab:components": each_model(parts.components),
    "tab:supp-attribution": each_model(refits.prior_controls),
    "tab:neutral-prior-controls": each_model(spc("Text-only", 0.04)),
    "tab:paired-calibration-full": each_model(refits.paired),
    "text:cf-only-fitting": each_model(refits.fitted_on_one_side),
    "tab:score-normalization": each_model(parts.summed),
    "tab:native-score-agreement": each_model(parts.native),
    "text:native-repairs": parts.native_sums,
    "text:frontier": each_model(*(main.frontier(epsilon) for epsilon in _EPSILONS)),
    "tab:matched-gate-four": each_model(spc("SPC", 0.04), parts.controls),
    "text:learned-rule-settings": each_model(parts.learned_rules),
    "tab:matched-shift": each_model(refits.less_or_shifted),
    "text:strengths": each_model(parts.strengths),
    "text:support-conditions": each_model(refits.support_conditions),
    "tab:calibration-size": each_model(refits.sizes),
    "tab:joint-task-fitting": each_model(refits.joint),
    "tab:family-holdout": each_model(refits.folds),
    "tab:family-folds": each_model(refits.folds),
    "text:holdout-pooled": each_model(refits.pooled),
    "tab:repeated-split-summary": each_model(refits.repeated_splits),
    "tab:mc-option-order": each_model(main.original_order),
    "tab:spectrum": each_model(main.spectrum(0.04), main.spectrum(0.10)),
    "text:answer-groups": each_model(main.answer_groups),
}
"""By label; tables that are not here, or rows that no function gives, are reported as not recomputed."""
