"""Results as people and programs read them."""

from unprior.report.tables import changes_table, evaluation_record, metrics_table, plain_table

__all__ = ["changes_table", "evaluation_record", "metrics_table", "plain_table"]
