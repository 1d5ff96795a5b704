"""Cost of observation: the trace in an epoch record, and the metrics and spans of a run.

    python -m benchmarks.observing [--commits 1000] [--files 200]

Commits: two roots side by side, of which one has records without a trace; they commit in turns.  A run: one file at a
time, and every two epochs the observer is taken away, or given back.  The observer itself: one epoch, and one look at
the whole, without a taker of spans and with the SDK of OpenTelemetry.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import slackwater as sw
from actors.hosting.metric_exporter import MetricExporter
from actors.protocol.run_state import RunState
from benchmarks.command import run_benchmark
from benchmarks.events import QUERY, event_files
from benchmarks.long_life import FILES_PER_EPOCH, TRACE, epoch_delta
from benchmarks.result import Number, Result, Row, Table
from slackwater.status.observability.epoch_spans import EpochSpans
from slackwater.status.observability.run_metrics import RunMetrics
from slackwater.status.trace import phases
from state.clock import SystemClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.epoch_trace import EpochTrace
from state.tables.records import EpochCounts, EpochSeconds

WARM = 20
TURN = 2
REPEATS = 2_000


def commits(count: int) -> Table:
    """Two roots that commit the same in turns."""
    clock = SystemClock()
    seconds: dict[str, list[float]] = {"without a trace": [], "with a trace": []}
    with tempfile.TemporaryDirectory(prefix="observing-") as directory:
        stores = {name: LanceRoot(Location(f"{directory}/{name}"), clock).create_or_open() for name in seconds}
        for store in stores.values():
            store.take_over()
        for number in range(WARM + count):
            for name, store in stores.items():
                epoch = next_epoch(clock, store.head.epoch)
                delta, text = epoch_delta(number, epoch), TRACE.to_json() if name == "with a trace" else None
                began = time.perf_counter()
                counts = EpochCounts(files=FILES_PER_EPOCH)
                store.commit(epoch=epoch, delta=delta, views={}, counts=counts, seconds=EpochSeconds(), trace=text)
                if number >= WARM:
                    seconds[name].append(time.perf_counter() - began)
        bytes_each = {
            name: sum(each.stat().st_size for each in Path(directory, name).rglob("*") if each.is_file()) / count
            for name in seconds
        }
    reference = statistics.median(seconds["without a trace"])
    rows = []
    for name, each in seconds.items():
        p50 = statistics.median(each)
        rows.append(Row(name, (Number(p50 * 1e3, "ms"), Number(round(bytes_each[name]), "B")), ratio=p50 / reference))
    caption = f"{count:,} commits in turns; the text of a trace has {len(TRACE.to_json())} bytes"
    return Table(("commit, p50", "on disk, each"), tuple(rows), ratio="of one without a trace", caption=caption)


def run(count: int) -> tuple[Table, Table]:
    """Epochs of a run with and without its observer, in turns; and the observer itself."""
    contents = list(event_files(WARM + count, 100))
    with tempfile.TemporaryDirectory(prefix="observing-") as directory:
        source = Path(directory) / "in"
        source.mkdir()
        pipeline = sw.Pipeline("bench", f"{directory}/root")
        pipeline.source("events", source, format="parquet", discovery=sw.Listing(interval_s=0.05))
        pipeline.view("by_user", QUERY)
        observed: dict[bool, list[float]] = {True: [], False: []}
        with pipeline.start() as started:
            observer = started._control.observer
            for number, content in enumerate(contents):
                is_observed = number // TURN % 2 == 0
                started._control.observer = observer if is_observed else None
                part = source / f".{number:06}"
                part.write_bytes(content)
                part.rename(source / f"{number:06}.parquet")
                while started.report().files <= number:
                    started.wait(timeout_s=0.002)
                last = started.status().recent[-1]
                if number >= WARM:
                    observed[is_observed].append(last.seconds.collect + last.commit_s)
            state = started._control.state
            names = {False: "not observed", True: "observed"}
            p50 = {name: statistics.median(observed[is_observed]) for is_observed, name in names.items()}
            rows = [
                Row(name, (Number(each * 1e3, "ms"),), ratio=each / p50["not observed"]) for name, each in p50.items()
            ]
            caption = f"{count:,} epochs of a run, from the barrier to the end of the commit"
            epochs = Table(("p50",), tuple(rows), ratio="of one that is not observed", caption=caption)
            return epochs, observer_table(state, started.status())


def observer_table(state: RunState, status: sw.RunStatus) -> Table:
    """The cost of an observer for each epoch, and about once a second."""
    metrics, epoch = RunMetrics(MetricExporter("bench")), state.recent[-1]
    text = state.traces.get(epoch.epoch, EpochTrace(phases(epoch.seconds)).to_json())
    metrics.on_status(status)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    spans, taken = EpochSpans("bench"), EpochSpans("bench", provider)
    kept = EpochTrace.of_json(text)
    calls: dict[str, Callable[[], object]] = {
        "an epoch: its trace read": lambda: EpochTrace.of_json(text),
        "an epoch: metrics": lambda: metrics.on_epoch(epoch, kept),
        "an epoch: spans, none taken": lambda: spans.on_epoch(epoch, kept),
        "an epoch: spans, taken": lambda: taken.on_epoch(epoch, kept),
        "a second: the whole": lambda: metrics.on_status(status),
    }
    rows = [Row(name, (Number(_microseconds(call), "µs"),)) for name, call in calls.items()]
    return Table(("takes",), tuple(rows), caption="The observer")


def _microseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(REPEATS):
        call()
    return (time.perf_counter() - began) / REPEATS * 1e6


def measure(options: argparse.Namespace) -> Result:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider), "no provider of spans is there by itself"
    return Result((commits(options.commits), *run(options.files)))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--commits", type=int, default=1_000)
    arguments.add_argument("--files", type=int, default=200)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
