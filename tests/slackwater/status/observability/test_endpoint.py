"""A real run, seen from outside: Ray's Prometheus endpoint, and an exporter of OpenTelemetry."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
import ray
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

import slackwater as sw
from slackwater.status.observability.run_metrics import METRICS
from tests.real.event_pipeline import FAST, TOTALS
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

NAME = "seen_from_outside"
NOT_OF_THIS_RUN = {
    "slackwater_recoveries_total",
    "slackwater_bad_rows_total",
    "slackwater_messages_total",
    "slackwater_messages_redelivered_total",
    "slackwater_messages_poison_total",
    "slackwater_messages_in_flight",
    "slackwater_watermark_timestamp_seconds",
    "slackwater_view_open_groups",
    "slackwater_view_late_rows_total",
    "slackwater_view_violations",
    "slackwater_view_held",
    "slackwater_indexes_rebuilt_total",
    "slackwater_view_caught_up_ratio",
    "slackwater_publication_lag_epochs",
    "slackwater_publication_lag_seconds",
    "slackwater_publication_failed",
    "slackwater_handled_files_total",
    "slackwater_handled_files_failed",
}
Labels = tuple[tuple[str, str], ...]


def endpoint() -> dict[str, dict[Labels, float]]:
    """What the endpoint of this node says of the pipeline: name → our labels → value."""
    [node] = [each for each in ray.nodes() if each["Alive"]]
    url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("pipeline") == NAME:
                ours = {"phase", "source", "view", "status", "edge", "le"}
                labels = tuple(sorted((key, value) for key, value in sample.labels.items() if key in ours))
                found.setdefault(sample.name, {})[labels] = sample.value
    return found


def value(found: Mapping[str, Mapping[Labels, float]], name: str, **labels: str) -> float | None:
    return found.get(f"ray_{name}", {}).get(tuple(sorted(labels.items())))


def published(found: Mapping[str, object]) -> set[str]:
    """The names of our metrics among those of the endpoint."""
    shown = {name for name in found if not name.endswith(("_sum", "_count"))}
    return {name.removeprefix("ray_").removesuffix("_bucket") for name in shown}


def test_what_a_run_does_is_seen_at_the_endpoint_and_as_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    for number in range(3):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(10 * number)))
    pipeline = sw.Pipeline(NAME, tmp_path / "root")
    pipeline.source("events", tmp_path / "in", format="parquet", discovery=FAST)
    pipeline.view("totals", TOTALS)
    with pipeline.start() as run:
        run.wait(until="caught_up")
        report = run.stop()
    assert (report.files, report.rows) == (3, 30)

    # Ray exports what is new a part at a time, and drops gauges of a run that is over.
    expected = {each.name for each in METRICS} - NOT_OF_THIS_RUN
    found: dict[str, dict[Labels, float]] = {}

    def look() -> bool:
        found.update(endpoint())
        has_view = value(found, "slackwater_view_seconds_count", view="totals") is not None
        return has_view and published(found) >= expected

    eventually(lambda: look() and value(found, "slackwater_run_phase", phase="stopped") == 1.0, limit_s=40)
    assert value(found, "slackwater_epochs_total") == report.epochs
    assert value(found, "slackwater_rows_total", source="events") == report.rows
    assert value(found, "slackwater_read_bytes_total", source="events") == report.bytes
    assert value(found, "slackwater_files_total", source="events", status="done") == 3
    assert value(found, "slackwater_view_rows", view="totals") == 3
    for phase in ("fetch", "align", "spark", "collect", "commit"):
        assert value(found, "slackwater_epoch_phase_seconds_count", phase=phase) == report.epochs
    assert value(found, "slackwater_view_seconds_count", view="totals") in range(1, report.epochs + 1)
    assert published(found) == expected

    store = sw.open(tmp_path / "root")
    committed = store.epochs()["epoch"].to_pylist()
    epochs = [span for span in exporter.get_finished_spans() if span.name == "epoch"]
    assert [(span.attributes or {})["slackwater.epoch"] for span in epochs] == committed
    names = {span.name for span in exporter.get_finished_spans()}
    assert {"fetch", "align", "spark", "collect", "commit", "align fetch-0", "spark totals"} <= names

    traces = [store.trace(epoch) for epoch in committed]
    kept = {span.name for each in traces for span in each.spans}
    assert {"totals", "list-events", "dispatcher", "fetch-0", "fetch-1", "merger"} <= kept
    assert all(each.commit_s is not None for each in traces), "of the last one the owner tells it"
    assert all(span.seconds >= 0 for each in traces for span in each.spans)
