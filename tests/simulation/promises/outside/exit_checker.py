"""Checks of the exit code of a run that ends without an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.status.run_status import RunReport
from state.tables.expectations import Gate
from state.tables.records import Head
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.outside.publication_checker import PublicationChecker, is_building
from tests.simulation.world.published_tables import ModelTable

if TYPE_CHECKING:
    from slackwater.plugins.publish.publication_loop import PublicationReport

_INCOMPLETE = 3


class ExitChecker:
    """Checks that a run exits with 3 if a table is behind or the last try for it has failed, and else with 0.

    Attributes:
        codes: the exit code of each checked run.

    Args:
        published: compares tables with the epochs that they must have.
        tables: view → the table that follows it.
    """

    def __init__(self, published: PublicationChecker, tables: Mapping[str, ModelTable]) -> None:
        self._published, self._tables = published, tables
        self.codes: list[int] = []

    def check(self, report: RunReport, last: Mapping[str, PublicationReport], head: Head, gate: Gate) -> None:
        """Checks the report of a run that has published its last epoch, or whose time for it is over.

        Args:
            report: the report.
            last: view → the last report of the process that publishes.
            head: of the store.
            gate: of the store.
        """
        code = report.exit_code
        self.codes.append(code)
        for status in report.publications:
            table, report_of = self._tables[status.view], last[status.view]
            fault = self._fault(table, report_of, head, gate)
            # A process can be ended before it reports, or before it names an epoch that has changed no row.
            is_named = self._published.names_last(table, head, gate)
            is_reported = report_of.looked >= head.epoch and report_of.epoch == table.epoch
            may_be_unknown = not fault and not (is_reported and is_named)
            if status.is_incomplete != bool(fault) and not (status.is_incomplete and may_be_unknown):
                is_state = f"the table of {status.view} is reported as {status.state}"
                raise PromiseBroken("exit", f"{is_state}: {fault or 'it is complete'}")
        if code != (_INCOMPLETE if any(each.is_incomplete for each in report.publications) else 0):
            raise PromiseBroken("exit", f"the run exits with {code}, and its tables are {report.publications}")

    def _fault(self, table: ModelTable, last: PublicationReport, head: Head, gate: Gate) -> str:
        """The fault of a table; empty without one."""
        if not self._published.is_current(table, head, gate):
            return f"it names epoch {table.epoch}, and lacks rows of the last epoch"
        if is_building(table.view, head.views):
            return "the backfill of its view is not complete"
        return "" if last.error is None else f"its last try failed: {last.error}"
