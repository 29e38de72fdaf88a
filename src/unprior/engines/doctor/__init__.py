"""Whether a model or server can be trusted with scores: probes, and what to do where one fails."""

from unprior.engines.doctor.examination import Examination, examine
from unprior.engines.doctor.finding import Finding, Status

__all__ = ["Examination", "Finding", "Status", "examine"]
