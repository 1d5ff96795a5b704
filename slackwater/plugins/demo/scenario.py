"""Scenario of the demo, shown on the terminal: files, start, more files, one replaced, SIGKILL, restart, comparison."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from slackwater.plugins.demo.flights import FORMATS, DayFile, day_files, planes, with_one_airbus, without_cancelled
from slackwater.plugins.demo.other_readers import PUBLISHED, Answer, PublishedPlace, answer_of_sql, published_answers
from slackwater.plugins.demo.place import Place, open_place
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.store import Store
from slackwater.reading.store import open as open_store
from slackwater.status.quantities import human_bytes
from state.clock import Clock, SystemClock
from state.errors import EpochNotFoundError, RunFailedError, StoreNotFoundError, UsageError
from state.tables.tables import REMOVED_STATUSES

_LAST_WEEKS_DAYS = 28
_EPOCHS_BEFORE_CRASH = 4
_POLL_S = 0.5
_LIMIT_S = 300.0
_SHOWN_ROWS = 6
_READERS = 3
_TARGET = "slackwater.plugins.demo.flights_pipeline:flights"


class Screen(Protocol):
    """The output of the command that runs the demo."""

    @property
    def console(self) -> Console: ...
    def table(self, table: pa.Table, title: str | None = None) -> None: ...
    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None = None) -> None: ...
    def progress(self) -> Progress: ...


def run_demo(screen: Screen, local: bool = False, directory: Path | None = None) -> bool:
    """Runs the whole demo.

    Args:
        screen: shows the story.
        local: True keeps the files in a directory instead of an embedded S3 server.
        directory: an empty or new directory for all data; None for a temporary one.

    Returns:
        True if every view equals DuckDB's result, at the epoch of the crash and at the last epoch.

    Raises:
        UsageError: the directory is not empty, or an optional package is missing.
        RunFailedError: the run failed, or exceeded the time limit.
    """
    with ExitStack() as stack:
        work = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slackwater-demo-")))
        work.mkdir(parents=True, exist_ok=True)
        if any(work.iterdir()):
            raise UsageError(f"{work} is not empty: give --directory an empty or a new one")
        place = stack.enter_context(open_place(work / "store" if local else None))
        return _Demo(place, work, SystemClock(), screen).play()


class _Demo:
    def __init__(self, place: Place, work: Path, clock: Clock, screen: Screen) -> None:
        self._place, self._clock, self._log = place, clock, work / "run.log"
        self._events = work / "events.jsonl"
        self._published = PublishedPlace(place.published, str(work / "catalog.db"))
        self._screen = screen
        self._started = clock.monotonic()

    def play(self) -> bool:
        files = list(day_files())
        early, late = files[:-_LAST_WEEKS_DAYS], files[-_LAST_WEEKS_DAYS:]
        first, corrected = files[0], without_cancelled(files[0])
        self._say(f"{sum(f.rows for f in files):,} flights, {len(files)} files in {self._place.name}")
        fleet = planes()
        self._put([fleet, *early])
        self._say(f"the first {len(early)} days are stored; starting the pipeline (Ray and Spark need a while)")
        with self._run(()) as child:
            self._watch(child, len(files), until_epochs=1)
            self._put(late)
            self._say(f"the last {len(late)} days arrived during the run")
            self._watch(child, len(files), until_epochs=_EPOCHS_BEFORE_CRASH)
            self._put([corrected, with_one_airbus(fleet)])
            self._say(f"{first.key} was replaced: {first.rows - corrected.rows} of {first.rows} flights were cancelled")
            self._say(f"{fleet.key} was replaced: one manufacturer had two names")
            child.send_signal(signal.SIGKILL)
            child.wait()
        crash = self._snapshot()
        assert crash is not None
        at_crash = self._done(crash)
        self._say(f"killed with SIGKILL at epoch {crash.epoch}: {at_crash} of {len(files)} files done")
        # DuckDB reads the files, so the replaced file is restored for a moment to the version that the views have.
        self._place.put_back(first.key)
        equal = self._compare("at the crash", crash)
        equal = self._compare_others("at the crash", self._published_answers()) and equal
        self._put([corrected])
        self._say("starting again")
        with self._run(("--until", "caught_up", "--json")) as child:
            self._watch(child, len(files))
            if child.wait() != 0:
                raise RunFailedError(f"the run ended with exit code {child.returncode}: {self._last_words()}")
        report = json.loads(self._events.read_text(encoding="utf-8").splitlines()[-1])
        end = self._snapshot()
        assert end is not None
        self._show(end, report)
        equal = self._compare("at the end", end) and equal
        others = [*self._published_answers(), answer_of_sql(self._store(), self._place.root, self._place.environment)]
        equal = self._compare_others("at the end", others) and len(others) == _READERS and equal
        complete = self._done(end) == len(files)
        self._conclude(equal, complete, crashed_in_the_middle=at_crash < len(files))
        return equal and complete

    def _put(self, files: Sequence[DayFile]) -> None:
        for file in files:
            self._place.put(file.key, file.body)

    @contextmanager
    def _run(self, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """`slackwater run` in a child process that ends with the block."""
        environment = {
            **os.environ,
            **self._place.environment,
            "SLACKWATER_DEMO_RAW": self._place.raw,
            "SLACKWATER_DEMO_ROOT": self._place.root,
            "SLACKWATER_DEMO_PUBLISHED": self._published.url,
            "SLACKWATER_DEMO_CATALOG": self._published.catalog,
        }
        command = [sys.executable, "-m", "slackwater", "run", _TARGET, *arguments]
        with self._log.open("ab") as log, self._events.open("ab") as events:
            child = subprocess.Popen(command, env=environment, stdout=events, stderr=log)
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()

    def _watch(self, child: subprocess.Popen[bytes], total: int, until_epochs: int | None = None) -> None:
        """Shows the progress until `until_epochs` epochs with rows are committed; None: until the child ends."""
        deadline = self._clock.monotonic() + _LIMIT_S
        with self._screen.progress() as progress:
            task = progress.add_task("files done", total=total)
            while child.poll() is None:
                snapshot = self._snapshot()
                if snapshot is not None:
                    progress.update(task, completed=self._done(snapshot))
                if until_epochs is not None and self._epochs() >= until_epochs:
                    return
                if self._clock.monotonic() > deadline:
                    raise RunFailedError(f"the run exceeded {_LIMIT_S:.0f} s; the end of its log: {self._last_words()}")
                self._clock.sleep(_POLL_S)
        if until_epochs is not None:
            raise RunFailedError(f"the run ended early; the end of its log: {self._last_words()}")

    def _snapshot(self) -> Snapshot | None:
        try:
            return self._store().snapshot()
        except (StoreNotFoundError, EpochNotFoundError):
            return None

    def _epochs(self) -> int:
        """The number of committed epochs with rows."""
        try:
            epochs = self._store().epochs()
        except StoreNotFoundError:
            return 0
        return int(pc.sum(pc.greater(epochs["rows"], 0)).as_py() or 0)

    def _done(self, snapshot: Snapshot) -> int:
        return sum(
            int(pc.sum(pc.equal(snapshot.files(f"flights_{name}")["status"], "done")).as_py() or 0) for name in FORMATS
        )

    def _show(self, end: Snapshot, report: Mapping[str, Any]) -> None:
        for view in ("by_carrier", "busy_routes", "by_manufacturer"):
            rows = end.view(view).to_arrow()
            title = f"{view}: {min(_SHOWN_ROWS, rows.num_rows)} of {rows.num_rows:,} rows"
            self._screen.table(rows.slice(0, _SHOWN_ROWS), title=title)
        self._screen.rows(
            [_totals(name, end.files(f"flights_{name}")) for name in FORMATS], _TOTALS, title="the ledger"
        )
        if report:
            self._say(
                f"after the crash: {report['epochs']} epochs, {report['files']} files, {report['rows']:,} rows, "
                f"{human_bytes(report['bytes'])} with {report['requests']:,} requests in {report['seconds']:.1f} s"
            )

    def _compare(self, moment: str, snapshot: Snapshot) -> bool:
        from slackwater.plugins.demo.flights_pipeline import DUCKDB_QUERIES
        from slackwater.verification.verifier import verify  # late: it loads Spark

        store = self._store()
        found = verify(store, snapshot.epoch, engine="duckdb", duckdb_queries=DUCKDB_QUERIES, follow_sources=True)
        rows = sum(_totals(name, snapshot.files(f"flights_{name}"))["rows"] for name in FORMATS)
        self._screen.rows(
            [
                {"view": v.view, "rows": v.rows, "DuckDB": v.expected_rows, "": " ".join((v.outcome.value, v.reason))}
                for v in found.views
            ],
            ("view", "rows", "DuckDB", ""),
            title=f"{moment}: epoch {snapshot.epoch}, {rows:,} rows ingested",
        )
        return found.all_equal

    def _published_answers(self) -> list[Answer]:
        return list(published_answers(self._store(), self._published, self._place.storage_options))

    def _compare_others(self, moment: str, answers: Sequence[Answer]) -> bool:
        """Compares what other programs read with the view at the epoch that each of them names."""
        self._screen.rows(
            [
                {
                    "reader": each.reader,
                    "epoch": each.epoch,
                    "rows": len(each.found),
                    "": "equal" if each.is_equal else "NOT EQUAL",
                }
                for each in answers
            ],
            ("reader", "epoch", "rows", ""),
            title=f"{moment}: {PUBLISHED}, as others read it",
        )
        return all(each.is_equal for each in answers)

    def _store(self) -> Store:
        return open_store(self._place.root, storage_options=self._place.storage_options or None)

    def _conclude(self, equal: bool, complete: bool, crashed_in_the_middle: bool) -> None:
        seconds = self._clock.monotonic() - self._started
        if not equal:
            self._say(f" to the result of DuckDB; please report it with {self._log}", ("NOT EQUAL", "red"))
        elif not complete:
            self._say(f": not every file is done; the log is {self._log}", ("INCOMPLETE", "red"))
        elif not crashed_in_the_middle:
            self._say(", but the run had read all files before the crash", ("all views equal", "yellow"))
        else:
            said = f": no row lost, none twice, and Delta, Iceberg and SQL agree; {seconds:.0f} s in total"
            self._say(said, ("all views equal", "green"))

    def _say(self, text: str, head: tuple[str, str] = ("", "")) -> None:
        """Prints a line with its time; a head is a text and its style."""
        seconds = (f"{self._clock.monotonic() - self._started:5.1f} s", "dim")
        self._screen.console.print(Text.assemble(seconds, "  ", head, text), soft_wrap=True)

    def _last_words(self) -> str:
        return " | ".join(self._log.read_text(errors="replace").splitlines()[-3:])


_TOTALS = ("source", "files", "done", "quarantined", "rows", "bytes", "requests")


def _totals(name: str, files: pa.Table) -> Mapping[str, Any]:
    is_there = pc.invert(pc.is_in(files["status"], value_set=pa.array(REMOVED_STATUSES)))
    return {
        "source": f"flights_{name}",
        "files": files.num_rows,
        "done": pc.sum(pc.equal(files["status"], "done")).as_py() or 0,
        "quarantined": pc.sum(pc.equal(files["status"], "quarantined")).as_py() or 0,
        "rows": pc.sum(files.filter(is_there)["rows_read"]).as_py() or 0,
        "bytes": human_bytes(pc.sum(files["bytes_read"]).as_py() or 0),
        "requests": pc.sum(files["requests"]).as_py() or 0,
    }
