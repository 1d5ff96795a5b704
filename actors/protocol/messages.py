"""What travels between actors.  Barriers and file names travel whole; rows travel as references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa

from actors.protocol.vnode_mapping import VnodeMapping
from state.epoch import EpochPair

if TYPE_CHECKING:
    from actors.fetching.handover import Handover


class BarrierKind(Enum):
    """`INITIAL` opens an attempt and seals nothing; `CHECKPOINT` seals an epoch that is then committed."""

    INITIAL = "initial"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Stop:
    """Every actor ends after passing the barrier."""


@dataclass(frozen=True)
class Pause:
    """Sources send nothing more; barriers go on."""


@dataclass(frozen=True)
class Resume:
    """Takes a `Pause` back."""


@dataclass(frozen=True)
class Throttle:
    """All fetch actors together open, read and emit no more than this each second; None for what the settings say."""

    files_per_second: float | None = None
    bytes_per_second: float | None = None
    rows_per_second: float | None = None


@dataclass(frozen=True)
class Retry:
    """Quarantined versions go back into the queue."""

    files: tuple[RetriedFile, ...]


@dataclass(frozen=True)
class Forget:
    """The rows of objects leave the views."""

    files: tuple[ForgottenFile, ...]


@dataclass(frozen=True)
class Reread:
    """These versions are read, in place of all that the views hold of their objects."""

    files: tuple[FileVersion, ...]


@dataclass(frozen=True)
class Update:
    """The vnodes are owned otherwise.

    Args:
        before, after: who has owned which, and who does.
        paused, throttle: what is in force, for fetch actors that begin here.
    """

    before: VnodeMapping
    after: VnodeMapping
    paused: bool = False
    throttle: Throttle = Throttle()


Mutation = Stop | Pause | Resume | Throttle | Retry | Forget | Reread | Update
"""What changes exactly at a barrier, at all actors.  Every executor passes on also what it does not act on."""


PathKey = tuple[str, str]
"""An object: its source, and its path relative to that."""
FileKey = tuple[str, str, bytes]
"""One version of an object: source, path, version."""


@dataclass(frozen=True)
class Vanished:
    """A version that was not there any more when it was to be read, and of which no row is in the views.

    `is_removed` says that some were, and have left them.
    """

    source: str
    path: str
    version: bytes
    is_removed: bool = False


@dataclass(frozen=True)
class Barrier:
    """The border between two epochs.

    Args:
        list_budget: source → how many new files its list actor may send until the next barrier.
        backlog: files that are listed and not finished.
        vanished: versions that are new files if they are listed again.
        admitted: the versions that may be read until the next barrier; None for all.
    """

    epoch: EpochPair
    kind: BarrierKind = BarrierKind.CHECKPOINT
    mutation: Mutation | None = None
    list_budget: Mapping[str, int] = field(default_factory=dict)
    backlog: int = 0
    vanished: tuple[Vanished, ...] = ()
    admitted: frozenset[FileKey] | None = None

    @property
    def is_stop(self) -> bool:
        return isinstance(self.mutation, Stop)


@dataclass(frozen=True)
class FileVersion:
    """One version of one object.  `path` is relative to its source; `version` is the 8-byte fingerprint."""

    source: str
    path: str
    version: bytes
    etag: str
    size: int
    last_modified: datetime


@dataclass(frozen=True)
class RetriedFile:
    """A quarantined version, with what its row in the ledger says: it goes on behind the rows that were read."""

    file: FileVersion
    rows_read: int
    rows_bad: int
    listed_epoch: int
    first_epoch: int | None
    attempts: int
    requests: int
    bytes_read: int

    @property
    def source(self) -> str:
        return self.file.source

    @property
    def path(self) -> str:
        return self.file.path


@dataclass(frozen=True)
class RetriedFiles:
    """What a `Retry` has for one fetch actor; it follows the barrier."""

    files: tuple[RetriedFile, ...]


@dataclass(frozen=True)
class ForgottenFile:
    """An object, in whatever version."""

    source: str
    path: str


@dataclass(frozen=True)
class ForgottenFiles:
    """What a `Forget` has for one fetch actor; it follows the barrier."""

    files: tuple[ForgottenFile, ...]


@dataclass(frozen=True)
class RereadFiles:
    """What a `Reread` has for one fetch actor; it follows the barrier."""

    files: tuple[FileVersion, ...]


@dataclass(frozen=True)
class NewFiles:
    """Versions to read, in the order of the listing.

    `sample` is how many of their source have been sent ahead so far to show its schema; 0 when it has one.
    """

    files: tuple[FileVersion, ...]
    sample: int = 0


@dataclass(frozen=True)
class ChangedFile:
    """An object that was handed on before, as `version`, is another one now; or the same, and had been gone."""

    version: bytes
    now: FileVersion

    @property
    def source(self) -> str:
        return self.now.source

    @property
    def path(self) -> str:
        return self.now.path


@dataclass(frozen=True)
class ChangedFiles:
    """Noted in the ledger, and read only if no row of the earlier version was."""

    files: tuple[ChangedFile, ...]


@dataclass(frozen=True)
class GoneFile:
    """A finished version whose object is not there any more."""

    source: str
    path: str
    version: bytes


@dataclass(frozen=True)
class GoneFiles:
    """Noted in the ledger; where changed files replace, their rows leave the views."""

    files: tuple[GoneFile, ...]


@dataclass(frozen=True)
class StoredBlock:
    """The rows of a block as they were staged for the dataset of their source.

    Args:
        path: of the dataset, relative to the root.
        schema: of what was staged: the lineage, and all columns that the source had.
        fragments: Lance's, as JSON.
    """

    path: str
    schema: pa.Schema
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """Rows of one source as one object: Arrow IPC stream bytes.

    `ref` is held until Spark has read it; `origin` is the edge whose credit the bytes have taken; `columns` are those
    of the source that the rows have, in its order; `stored` is None if the source is not materialized.
    """

    origin: str
    source: str
    ref: Any
    rows: int
    nbytes: int
    columns: tuple[str, ...] = ()
    stored: StoredBlock | None = None


@dataclass(frozen=True)
class Correction:
    """The rows that the views hold of an object go, and those of one version of it come in their place.

    Args:
        version: that one; None if no rows come.
        stored: its rows, as they were staged.
    """

    source: str
    path: str
    version: bytes | None = None
    stored: tuple[StoredBlock, ...] = ()


Message = Union[
    Barrier,
    NewFiles,
    ChangedFiles,
    GoneFiles,
    RetriedFiles,
    ForgottenFiles,
    RereadFiles,
    Block,
    Correction,
    "Handover",
]


@dataclass(frozen=True)
class Envelope:
    """One message on one edge.  `sequence` counts from 0 without gaps."""

    edge: str
    sequence: int
    message: Message
