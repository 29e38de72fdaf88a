"""Pages and records of finished studies; the numbers and tables are those of the studies."""

from unprior.report.page import report_record, write_report
from unprior.report.study_page import write_study, write_study_page

__all__ = ["report_record", "write_report", "write_study", "write_study_page"]
