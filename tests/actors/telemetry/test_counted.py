"""Tests of the descriptions of counters."""

from __future__ import annotations

from dataclasses import dataclass

from actors.telemetry.counted import Counted, counted, counters_of, metrics_of, values_of
from actors.telemetry.metrics import Metric


@dataclass(frozen=True)
class Reported:
    """The counts of an actor."""

    done: int = counted("files", "Files.", metric=("files", "source"), labels={"status": "done"}, in_ledger=True)
    lost: int = counted("files", "Files.", metric=("files", "source"), labels={"status": "lost"})
    age_s: float = counted("seconds", "Age.", default=0.5, kind="gauge", metric=("age_seconds", "source"))
    quiet: int = counted("rows", "Rows.", log="rows")
    name: str = ""


@dataclass(frozen=True)
class Shown(Reported):
    """A status with the counts of the actor, and one of its own."""

    by_view: dict[str, int] = counted("rows", "Rows.", default_factory=dict, metric=("view_rows", "view"), kind="gauge")


FILES = Metric("slackwater_files_total", "counter", "files", "Files.", ("source", "status"))


def test_a_status_has_the_counters_of_the_reports_that_it_extends() -> None:
    assert [*counters_of(Shown)] == ["done", "lost", "age_s", "quiet", "by_view"], "a field without description is none"
    assert counters_of(Shown)["quiet"] == Counted("rows", "Rows.", log="rows")
    assert Shown() == Shown(done=0, lost=0, age_s=0.5, quiet=0, name="", by_view={})
    assert Shown(**values_of(Reported, Shown(done=3, name="a"))) == Shown(done=3, name="a")


def test_a_metric_follows_from_the_description_and_fields_may_share_it() -> None:
    assert metrics_of(Shown) == (
        FILES,
        Metric("slackwater_age_seconds", "gauge", "seconds", "Age.", ("source",)),
        Metric("slackwater_view_rows", "gauge", "rows", "Rows.", ("view",)),
    )
