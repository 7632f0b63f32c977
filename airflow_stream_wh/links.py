"""The button of a task that opens the report of its warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

__all__ = ["ReportLink", "report_address"]


def report_address(project: str, report: str | None, report_url: str | None) -> str:
    """Return the address of a report: its URL, else its file as a URL, else an empty text."""
    if report_url:
        return report_url
    return Path(project, report).absolute().as_uri() if report else ""


class ReportLink(BaseOperatorLink):
    """Opens the report that the operator's ``report`` or ``report_url`` names; other operators have no report."""

    @property
    def name(self) -> str:
        """Return the text of the button."""
        return "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address, with the operator's templates rendered."""
        del ti_key
        return report_address(
            getattr(operator, "project", ""), getattr(operator, "report", None), getattr(operator, "report_url", None)
        )
