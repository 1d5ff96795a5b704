"""Computation of views by one engine over one ledger; the engine and its sources are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import pyarrow as pa

from actors.file_errors import ObjectChanged, ObjectVanished
from slackwater.reading.recorded_source import RecordedSource
from slackwater.verification.engine import CannotComputeError, Engine, WrongLedgerError
from slackwater.verification.ingested_files import IngestedFiles
from slackwater.verification.step import OnStep, Step
from state.errors import RunFailedError, StorageError
from state.tables.records import CatalogView

_SAYS_NOTHING = (CannotComputeError, ObjectChanged, ObjectVanished, RunFailedError, StorageError)


class Computation:
    """Computes views with one engine.  A context manager: its end removes the engine and its files.

    Args:
        name: the name of the engine.
        start: makes the engine, given a directory of its own.
        sources: name → source of the views, with its ingested files.
        on_step: called at each step.
    """

    def __init__(
        self, name: str, start: Callable[[Path], Engine], sources: Mapping[str, RecordedSource], on_step: OnStep
    ) -> None:
        self.name = name
        self._start, self._sources, self._on_step = start, sources, on_step
        self._stack = ExitStack()
        self._engine: Engine | None = None
        self._directory = Path()
        self._loaded: dict[str, Exception | None] = {}

    def __enter__(self) -> Computation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def rows(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        """The expected rows of a view.

        Raises:
            CannotComputeError: the engine cannot compute the view; the message has the reason.
            WrongLedgerError: a file does not have the rows, or the bad records, of the ledger.
        """
        engine = self._started()
        engine.accept(view)
        for name in view.sources:
            trouble = self._load(engine, name)
            if isinstance(trouble, WrongLedgerError):
                raise trouble
            if trouble is not None:
                raise CannotComputeError(str(trouble))
        self._on_step(Step(f"{view.name}: {self.name} computes it"))
        try:
            return engine.answer(view, schema)
        except RunFailedError as error:
            raise CannotComputeError(str(error)) from error

    def _started(self) -> Engine:
        if self._engine is None:
            self._directory = Path(self._stack.enter_context(TemporaryDirectory(prefix="slackwater-verify-")))
            self._engine = self._stack.enter_context(self._start(self._directory))
        return self._engine

    def _load(self, engine: Engine, name: str) -> Exception | None:
        """Loads a source once; returns the error that prevents its use, or None."""
        if name not in self._loaded:
            source = self._sources[name]
            text, total = f"{name}: {self.name} reads its files", len(source.files)
            scratch = self._directory / name
            scratch.mkdir()
            try:
                _require_quarantine(source)
                engine.load(IngestedFiles(source, lambda done: self._on_step(Step(text, done, total))), scratch)
                self._loaded[name] = None
            except (WrongLedgerError, *_SAYS_NOTHING) as error:
                self._loaded[name] = error
        return self._loaded[name]


def _require_quarantine(source: RecordedSource) -> None:
    for file in source.files:
        if file.rows_bad != len(file.bad):
            raise WrongLedgerError(
                f"the ledger says that {file.rows_bad:,} records of {file.file.path} are quarantined; "
                f"the quarantine has {len(file.bad):,}"
            )
