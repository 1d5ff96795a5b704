"""Progress of one file version, and the way it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

from actors.files import FileKey, FileVersion, PathKey, RetriedFile
from actors.protocol.blocks import StoredBlock
from actors.rows import BadRecord, Offset
from state.tables.keys import encode_key
from state.vnode import vnode_of

FileStatus: TypeAlias = Literal["done", "quarantined", "vanished", "forgotten"]
"""The `status` of a file version in the ledger, as the fetch step writes it."""


@dataclass(frozen=True)
class Ending:
    """The end of a file version.

    Args:
        status: its status in the ledger.
        error: the reason in one line; None for a file that was read.
        is_deleted: whether the object does not exist any more.
    """

    status: FileStatus
    error: str | None = None
    is_deleted: bool = False


@dataclass(eq=False)
class FileProgress:
    """One file version between its listing and its end.

    Args:
        listed_epoch: the epoch in which a listing handed it on.
        first_epoch: the epoch of its first row.
        row_offset: records emitted: the position of the next one to emit.
        rows_bad: quarantined ones among them.
        anchor: a place at or before that position where reading can begin.
        attempts: reads that failed, those before a retry too.
        unanswered: those of them that this actor has seen without an answer of the store.
        requests, bytes_read: cost of reading so far.
        deleted_epoch: the epoch in which a listing first lacked the object.
        replaces: whether its rows, at its end and in one epoch, come in place of all that the views hold of the object.
        stored: whether a `queue` row exists in the store, or in a delta that was sealed.

    Attributes:
        event_high: of a file that replaces: the highest event time of its staged rows.
        read_to: where reading continues: the position of the next record to read.
        has_proposed: whether it has proposed a schema for its source.
        staged, bad: of a file that replaces: its staged blocks and bad records so far.
        ending: of a file that replaces: its end, when all of it was read.
        kept_row: the ledger row of this very version while it is read again and its earlier rows are in the views.
    """

    file: FileVersion
    listed_epoch: int
    first_epoch: int | None = None
    row_offset: int = 0
    rows_bad: int = 0
    anchor: Offset = field(default_factory=Offset)
    attempts: int = 0
    unanswered: int = 0
    requests: int = 0
    bytes_read: int = 0
    deleted_epoch: int | None = None
    replaces: bool = False
    stored: bool = False

    def __post_init__(self) -> None:
        self.read_to = self._emitted_to
        self.is_reading = False
        self.has_proposed = False
        self.staged: list[StoredBlock] = []
        self.bad: list[BadRecord] = []
        self.event_high: int | None = None
        self.ending: Ending | None = None
        self.kept_row: dict[str, object] | None = None

    @classmethod
    def of_retried(cls, retried: RetriedFile) -> FileProgress:
        """A quarantined version that is queued again; the read that quarantined it counts as a failed one."""
        return cls(
            retried.file,
            listed_epoch=retried.listed_epoch,
            first_epoch=retried.first_epoch,
            row_offset=retried.rows_read,
            rows_bad=retried.rows_bad,
            attempts=retried.attempts + 1,
            requests=retried.requests,
            bytes_read=retried.bytes_read,
        )

    @property
    def _emitted_to(self) -> Offset:
        return self.anchor.at(self.row_offset)

    @property
    def has_begun(self) -> bool:
        """True if some of its rows are emitted or staged."""
        return bool(self.row_offset or self.staged)

    @property
    def is_unread(self) -> bool:
        """True if its `queue` row is as the listing made it."""
        touched = (
            self.requests
            or self.attempts
            or self.unanswered
            or self.row_offset
            or self.first_epoch
            or self.deleted_epoch
        )
        return self.stored and not (touched or self.replaces or self.has_proposed or self.staged)

    def settle(self, *, is_interrupted: bool) -> None:
        """Forgets rows that were read and will not be emitted, so that another fetch actor can continue.

        Args:
            is_interrupted: whether a piece is being read or staged: with it a file that replaces loses all its pieces.
        """
        self.is_reading = False
        if is_interrupted or not self.replaces:
            self.read_to = self._emitted_to
            self.staged, self.bad, self.ending, self.event_high = [], [], None, None

    @property
    def path_key(self) -> PathKey:
        return self.file.source, self.file.path

    @cached_property
    def key(self) -> FileKey:
        return self.file.source, self.file.path, self.file.version

    @cached_property
    def state_key(self) -> bytes:
        """The key of its rows in `queue` and `ledger`."""
        return encode_key(*self.key)

    def reading_order(self) -> tuple[bool, int, datetime, str]:
        """Sort key for versions of one path: the one with rows is read first, then the first that was listed."""
        return self.row_offset == 0, self.listed_epoch, self.file.last_modified, self.file.path

    @cached_property
    def vnode(self) -> int:
        return vnode_of(self.file.path)

    def quarantine_key(self, bad: BadRecord) -> bytes:
        """The key of a bad record's row in `quarantine`."""
        return encode_key(*self.key, bad.row)

    def quarantine_row(self, bad: BadRecord) -> dict[str, object]:
        """A bad record's row in `quarantine`."""
        source, path, version = self.key
        return {
            "source": source,
            "path": path,
            "version": version,
            "row": bad.row,
            "raw": bad.raw,
            "reason": bad.reason,
        }

    def queue_row(self) -> dict[str, object]:
        """Its row in `queue`, from which a restart continues."""
        return self._row() | {
            "row_offset": self.row_offset,
            "anchor_row": self.anchor.anchor_row,
            "anchor_byte": self.anchor.anchor_byte,
            "error": None,
        }

    def ledger_row(self, ending: Ending, *, done_epoch: int, changed_epoch: int | None) -> dict[str, object]:
        """Its row in `ledger`, which stays for ever."""
        return self._row() | {
            "status": ending.status,
            "rows_read": self.row_offset,
            "done_epoch": done_epoch,
            "changed_epoch": changed_epoch,
            "deleted_epoch": done_epoch if ending.is_deleted else self.deleted_epoch,
            "error": ending.error,
        }

    def _row(self) -> dict[str, object]:
        file = self.file
        return {
            "source": file.source,
            "path": file.path,
            "version": file.version,
            "etag": file.etag,
            "size": file.size,
            "last_modified": file.last_modified,
            "listed_epoch": self.listed_epoch,
            "first_epoch": self.first_epoch,
            "rows_bad": self.rows_bad,
            "bytes_read": self.bytes_read,
            "requests": self.requests,
            "attempts": self.attempts,
            "replaces": self.replaces,
        }
