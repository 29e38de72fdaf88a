"""The versions of SPC that the paper reports side by side."""

from __future__ import annotations

from unprior.calibration import Decisions
from unprior.studies.inputs import StudyInputs


def spc_versions(inputs: StudyInputs) -> dict[str, Decisions]:
    """What each version decides about the test rows, by its name; the version under study comes first.

    The paper's table of methods has the uncertainty-aware numbers in its row of the wide ε, its text those of the
    standard version; both are here. A version that is listed already is not listed again.

    >>> from unprior import synthesize
    >>> list(spc_versions(StudyInputs(synthesize(seed=0))))
    ['SPC (standard, ε = 0.04)', 'SPC (standard, ε = 0.10)', 'SPC (uncertainty-aware, ε = 0.10)']
    """
    versions = (
        inputs.decisions(),
        inputs.decisions(inputs.wide_epsilon),
        inputs.decisions(inputs.wide_epsilon, uncertainty=True),
    )
    return {decisions.method: decisions for decisions in versions}
