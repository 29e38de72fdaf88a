"""The experiments of the paper and what goes beyond it; ``unprior.studies.registry`` lists them.

A study is a module such as ``unprior.studies.rq1.attraction``: import its functions, results and figure from there.
"""

from unprior.studies.by_model import ByModel
from unprior.studies.finished import FinishedStudy, run_studies
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult
from unprior.studies.study import Study

__all__ = [
    "STUDIES",
    "ByModel",
    "FinishedStudy",
    "Study",
    "StudyInputs",
    "StudyResult",
    "choose_studies",
    "run_studies",
]
