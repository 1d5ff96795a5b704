"""Engine of a verification: the protocol, and its errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

from slackwater.verification.ingested_files import IngestedFiles
from state.tables.records import CatalogView

EngineChoice: TypeAlias = Literal["auto", "duckdb", "spark"]

_FUNCTION = re.compile(r"@|<function |(async )?def \w")


class CannotComputeError(Exception):
    """The engine cannot read a source, or cannot compute a view with the meaning of Spark; the view may be right."""


class TimeLimitError(CannotComputeError):
    """The engine has reached the limit of time; no other engine is asked."""

    def __init__(self, timeout_s: float | None) -> None:
        super().__init__(f"it takes more than {timeout_s or 0:g} s (--timeout)")


class WrongLedgerError(Exception):
    """The recorded version of a file does not have the rows, or the bad records, of the ledger."""


class Engine(Protocol):
    """The ingested rows of some sources, with the computation of views over them.  A context manager."""

    name: str

    def accept(self, view: CatalogView) -> None:
        """Refuses a view that the engine cannot compute, before any file is read for it.

        Raises:
            CannotComputeError: the message has the reason.
        """
        ...

    def load(self, files: IngestedFiles, scratch: Path) -> None:
        """Loads the ingested rows of a source.

        Args:
            files: the ingested files of the source.
            scratch: an empty directory for the data of this source.

        Raises:
            CannotComputeError: the engine has no counterpart to the reader of the source.
            WrongLedgerError: a file has other rows, or other bad records, than the ledger.
            ObjectChanged, ObjectVanished: a file changed after `IngestedFiles.check`.
            StorageError: the bucket cannot be read.
            RunFailedError: the engine failed.
        """
        ...

    def answer(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        """The rows of a view that was accepted; all sources that it reads are loaded.

        Args:
            schema: the schema of the stored view and of the answer.

        Raises:
            CannotComputeError: the engine does not understand the view, or gives it another meaning.
            RunFailedError: the engine failed.
        """
        ...

    def __enter__(self) -> Engine: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def query_of(view: CatalogView) -> str | None:
    """The SQL of a view; None for a function, whose source text in the catalog is for display only."""
    return None if _FUNCTION.match(view.definition) else view.definition


def require_parents(engine: Engine, view: CatalogView, views: Mapping[str, CatalogView]) -> None:
    """Refuses a view if the engine cannot compute one that it reads.

    Args:
        views: the views of the catalog, by name.

    Raises:
        CannotComputeError: naming the view that it reads.
    """
    for name in view.views:
        if name not in views:
            raise CannotComputeError(f"it reads the view {name}, which the root does not have any more")
        try:
            engine.accept(views[name])
        except CannotComputeError as error:
            raise CannotComputeError(f"view {name}, which it reads: {error}") from None
