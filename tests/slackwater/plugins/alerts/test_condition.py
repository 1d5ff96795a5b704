"""The texts of conditions, and the subjects for which they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files

import pytest
import yaml

from actors.protocol.run_state import CommittedEpoch
from slackwater.plugins.alerts.condition import FORMS, Condition, Facts
from slackwater.status.observability.run_metrics import METRICS
from slackwater.status.run_status import PublicationStatus, RunStatus, SourceStatus, ViewStatus
from state.errors import SettingsError
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START

NOW = START + timedelta(hours=3)
COMMITTED = CommittedEpoch(7, START, EpochCounts(1, 1, 1, 1), EpochSeconds(0, 0, 0, 0))
RUN = RunStatus(
    phase="running",
    sources={
        "late": SourceStatus(oldest_unfinished_s=301, watermark_lag_s=61),
        "early": SourceStatus(oldest_unfinished_s=300, quarantined=5),
    },
    views={"whole": ViewStatus("full", behind_s=90)},
    publications=(
        PublicationStatus("whole", "delta:/a", behind_epochs=3, behind_s=700.0, failures=2, error="no space is left"),
        PublicationStatus("whole", "iceberg:/b", behind_epochs=1, behind_s=1.0),
    ),
)
LEDGER = RunStatus(
    sources={
        "late": SourceStatus(quarantined=2, rows_bad=100, paused_removals=1, paused="s3://raw is a Delta table"),
        "early": SourceStatus(rows_bad=99, filled_columns=("qty", "at")),
    },
    views={
        "whole": ViewStatus("full", error="overflow"),
        "closed": ViewStatus("aggregate", late_rows=3, violations={"few": 1, "named": 4}, held_since=7),
    },
    recent=(COMMITTED,),
)
FACTS = Facts(RUN, LEDGER, {"late": START, "early": NOW}, NOW)


@pytest.mark.parametrize(
    ("text", "holding"),
    [
        ("lag > 5 minutes", {"late": 301}),
        ("  Lag >5 min", {"late": 301}),
        ("lag > 5.02 minutes", {}),
        ("watermark lag > 1 minute", {"late": 61}),
        ("view lag > 1 min", {"whole": 90}),
        ("publication lag > 10 minutes", {"whole to delta:/a": 700}),
        ("publication failed", {"whole to delta:/a": 1}),
        ("quarantined files > 0", {"late": 2}),
        ("source paused", {"late": 1}),
        ("bad records > 99", {"late": 100}),
        ("bad records > 1,000", {}),
        ("filled columns > 1", {"early": 2}),
        ("filled columns > 2", {}),
        ("paused removals > 0", {"late": 1}),
        ("late rows > 2", {"closed": 3}),
        ("violations > 4", {"closed": 5}),
        ("held", {"closed": 1}),
        ("no file for 2 h", {"late": 10_800}),
        ("no commit for 2 hours", {"": 10_800}),
        ("no commit for 4 hours", {}),
        ("view failed", {"whole": 1}),
        ("run failed", {}),
    ],
)
def test_a_condition_holds_for_the_sources_or_views_above_its_limit(text: str, holding: Mapping[str, float]) -> None:
    assert Condition.of(text).holding(FACTS) == holding


def test_a_run_that_starts_or_recovers_is_not_judged() -> None:
    for phase in ("starting", "recovering"):
        facts = replace(FACTS, run=replace(RUN, phase=phase))
        assert Condition.of("lag > 5 minutes").holding(facts) is None
        assert Condition.of("run failed").holding(facts) is None
        assert Condition.of("publication failed").holding(facts) is None
        assert Condition.of("quarantined files > 0").holding(facts) == {"late": 2}, "the ledger tells it"
    assert Condition.of("run failed").holding(replace(FACTS, run=replace(RUN, phase="failed"))) == {"": 1}


def test_a_root_without_an_epoch_tells_nothing() -> None:
    facts = Facts(RUN, None, {}, NOW)
    for text in ("quarantined files > 0", "no commit for 1 s", "view failed"):
        assert Condition.of(text).holding(facts) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("quarantine files > 0", r"did you mean 'quarantined files > NUMBER'\? the conditions are: lag > DURATION, "),
        ("lag > soon", r"alert 'lag > soon'.*give a duration such as \"10 minutes\""),
        ("lag < 5 minutes", r"did you mean 'lag > DURATION'"),
        ("bad records > many", r"invalid number 'many'; write it as in 'bad records > 100'"),
        ("", "the conditions are"),
    ],
)
def test_another_text_is_refused_with_the_forms_that_there_are(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Condition.of(text)


def test_prometheus_has_a_rule_for_each_condition_over_published_metrics() -> None:
    text = (files("slackwater.status.observability") / "alerts.yaml").read_text()
    rules = {each["alert"]: each["expr"] for each in yaml.safe_load(text)["groups"][0]["rules"]}
    assert [Condition.of(each).what for each in rules] == [re.sub(r" (>|for) .*", "", each) for each in FORMS]
    metrics = {each.name: each.labels for each in METRICS}
    for alert, expression in rules.items():
        (metric,) = re.findall(r"ray_(slackwater_\w+)", expression)
        kind = Condition.of(alert).kind
        labels = {"pipeline": (), "publication": ("view", "table")}.get(kind, (kind,))
        assert {*labels} <= {*metrics[metric]}, alert
        assert f"({', '.join(['pipeline', *labels])})" in expression
