"""Results as people and programs read them."""

from unprior.report.method_tables import cost_table, methods_table
from unprior.report.page import report_record, write_report
from unprior.report.tables import attraction_table, changes_table, components_table, evaluation_record, metrics_table
from unprior.tables.terminal import plain_table

__all__ = [
    "attraction_table",
    "changes_table",
    "components_table",
    "cost_table",
    "evaluation_record",
    "methods_table",
    "metrics_table",
    "plain_table",
    "report_record",
    "write_report",
]
