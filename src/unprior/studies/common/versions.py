"""The versions of SPC that the paper reports side by side."""

from __future__ import annotations

from unprior.calibration import Decisions
from unprior.studies.inputs import StudyInputs
from unprior.tables.format import format_limit


def spc_versions(inputs: StudyInputs) -> dict[str, Decisions]:
    """What each version decides about the test rows, by its name for people.

    The paper's table of methods has the uncertainty-aware numbers in its row of the wide ε, its text those of the
    standard version; both are here.

    >>> from unprior import synthesize
    >>> list(spc_versions(StudyInputs(synthesize(seed=0))))
    ['SPC (ε = 0.04)', 'SPC (ε = 0.10)', 'SPC (ε = 0.10, uncertainty-aware)']
    """
    return {
        f"SPC (ε = {format_limit(inputs.epsilon)})": inputs.decisions(),
        f"SPC (ε = {format_limit(inputs.wide_epsilon)})": inputs.decisions(inputs.wide_epsilon),
        f"SPC (ε = {format_limit(inputs.wide_epsilon)}, uncertainty-aware)": inputs.decisions(
            inputs.wide_epsilon, uncertainty=True
        ),
    }
