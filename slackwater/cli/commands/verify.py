"""`slackwater verify`: computes every view again, compares, and prints the differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole, print_note, progress_bar

if TYPE_CHECKING:
    from rich.progress import TaskID

    from slackwater.pipeline import Pipeline
    from slackwater.reading.store import Store
    from slackwater.verification.comparison import Differences
    from slackwater.verification.engine import EngineChoice
    from slackwater.verification.step import Step
    from slackwater.verification.verification import Verification, ViewCheck

_COLUMNS = ("view", "result", "by", "rows", "expected", "epoch", "why")


def print_verification(
    store: Store,
    epoch: str | None,
    pipeline: Pipeline | None,
    follow_sources: bool,
    engine: EngineChoice,
    timeout_s: float,
    output: Output,
) -> Verification:
    """Verifies a store, with progress on stderr, and prints the result."""
    from slackwater.verification.verifier import verify

    with _Steps() as steps:
        found = verify(
            store,
            epoch,
            pipeline=pipeline,
            engine=engine,
            follow_sources=follow_sources,
            timeout_s=timeout_s,
            on_step=steps.show,
        )
    if output.json:
        output.document({**asdict(found), "all_equal": found.all_equal})
        return found
    output.rows([_row(view) for view in found.views], _COLUMNS, title=f"epoch {found.epoch}")
    for view in found.views:
        if view.differences is not None:
            _print_differences(view, view.differences, output)
    for index in found.wrong_indexes:
        output.text(
            f"{index.dataset}: the index of {index.column} differs from the rows ({index.missing} missing, "
            f"{index.wrong} wrong): the next run rebuilds it; rebuild each view that is different"
        )
    return found


class _Steps:
    """The progress: one line that changes on a terminal, else one line for each step."""

    def __init__(self) -> None:
        console = SafeConsole(stderr=True)
        self._progress = progress_bar(console) if console.is_terminal else None
        self._task: TaskID | None = None
        self._text = ""

    def __enter__(self) -> _Steps:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, step: Step) -> None:
        if self._progress is None:
            if step.text != self._text:
                print_note(step.text)
        else:
            if self._task is None:
                self._task = self._progress.add_task("")
            self._progress.update(self._task, description=step.text, completed=step.done, total=step.total or None)
        self._text = step.text


def _row(view: ViewCheck) -> Mapping[str, Any]:
    from slackwater.verification.duckdb_engine import DuckDbEngine
    from slackwater.verification.verification import Outcome

    # The reason why DuckDB left a view to Spark says nothing about rows that are equal.
    is_beside = view.outcome is Outcome.EQUAL and view.reason.startswith(f"{DuckDbEngine.name}: ")
    why = "" if is_beside else view.reason
    if view.differences is not None:
        counts = {name: getattr(view.differences, name) for name in ("missing", "extra", "changed")}
        why = "; ".join(filter(None, (", ".join(f"{count:,} {name}" for name, count in counts.items() if count), why)))
    if view.by_parents is not None:
        why = "; ".join(filter(None, (f"{view.by_parents.value} from the views that it reads", why)))
    return {
        "view": view.view,
        "result": view.outcome.value,
        "by": view.engine,
        "rows": view.rows,
        "expected": view.expected_rows,
        "epoch": str(view.epoch),
        "why": why,
    }


def _print_differences(view: ViewCheck, differences: Differences, output: Output) -> None:
    """Prints examples as pairs of lines: the row in the view, and the expected row."""
    rows = []
    for example in differences.examples:
        for side, row in (("view", example.view), (str(view.engine), example.expected)):
            if row is not None:
                rows.append({"of": side, **row})
    output.rows(rows, list(rows[0]), title=f"{view.view}: examples of rows that differ")
