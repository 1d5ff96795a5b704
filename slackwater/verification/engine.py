"""What an engine does that computes a view again."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import Protocol

import pyarrow as pa

from slackwater.verification.ingested_files import IngestedFiles
from state.tables.records import CatalogView

_FUNCTION = re.compile(r"@|<function |(async )?def \w")


class CannotComputeError(Exception):
    """The engine cannot read a source or compute a view as it is meant; says nothing about the view."""


class WrongLedgerError(Exception):
    """The recorded version of a file does not have the rows, or the bad records, that the ledger says."""


class Engine(Protocol):
    """Holds the ingested rows of some sources, and computes views over them.  A context manager."""

    name: str

    def accept(self, view: CatalogView) -> None:
        """Refuses a view that it cannot compute, before anything is read for it.

        Raises:
            CannotComputeError: with the reason.
        """
        ...

    def load(self, files: IngestedFiles, scratch: Path) -> None:
        """Takes in the ingested rows of a source.

        Args:
            files: of the source.
            scratch: an empty directory for what this source needs on disk.

        Raises:
            CannotComputeError: the engine has no counterpart to the way in which the source is read.
            WrongLedgerError: a file does not have the rows, or other records of it are bad.
            ObjectChanged, ObjectVanished: a file is not what it was a moment ago.
            StorageError: the bucket cannot be read.
            RunFailedError: the engine failed.
        """
        ...

    def answer(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        """The rows of a view that was accepted; all sources that it reads are loaded.

        Args:
            view: what to compute.
            schema: of the stored view; the answer has it, too.

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
    """The SQL of a view; None if it is a function, of which the catalog has the source for people only."""
    return None if _FUNCTION.match(view.definition) else view.definition
