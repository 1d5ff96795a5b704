"""How far one file version is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from actors.files import FileKey, FileVersion, PathKey, RetriedFile
from actors.protocol.blocks import StoredBlock
from actors.rows import BadRecord, Offset
from state.tables.keys import encode_key
from state.vnode import vnode_of


@dataclass(frozen=True)
class Ending:
    """How a file version ends: `status` (done, quarantined, vanished, forgotten) and `error` as in the ledger.

    `is_gone` if the object is not there any more.
    """

    status: str
    error: str | None = None
    is_gone: bool = False


@dataclass(eq=False)
class FileProgress:
    """One file version between its listing and its end.

    Args:
        row_offset: records emitted: the position of the next one to emit.
        rows_bad: how many of them are quarantined.
        anchor: a place at or before it where reading can begin.
        read_to: where reading goes on: the position of the next record to read.
        requests, bytes_read: what reading cost so far.
        attempts: tries that ended without what was asked for, those before a retry too.
        unanswered: those of this actor that the store did not answer.
        gone_epoch: when a listing did not show the object any more.
        replaces: whether its rows come in place of all that the views hold of the object: at its end, in one epoch.
        stored: whether a `queue` row exists in the store, or in a delta that was sealed.
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
    gone_epoch: int | None = None
    replaces: bool = False
    stored: bool = False

    def __post_init__(self) -> None:
        self.read_to = self._emitted_to
        self.is_reading = False
        # Whether it has answered for what its source looks like.
        self.has_shown = False
        # Of a file that replaces: what was staged of it so far, and how it ends.
        self.staged: list[StoredBlock] = []
        self.bad: list[BadRecord] = []
        self.ending: Ending | None = None
        # What the ledger says of this very version, of which rows are in the views while it is read again.
        self.kept_row: dict[str, object] | None = None

    @classmethod
    def of_retried(cls, retried: RetriedFile) -> FileProgress:
        """A quarantined version that is in the queue again; the try that quarantined it counts."""
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
        anchor = self.anchor
        return anchor if anchor.row == self.row_offset else replace(anchor, row=self.row_offset)

    @property
    def has_begun(self) -> bool:
        """Whether something of it has been read that counts."""
        return bool(self.row_offset or self.staged)

    @property
    def is_unread(self) -> bool:
        """Whether it is in the queue as it was listed, and nothing else is known of it."""
        touched = (
            self.requests or self.attempts or self.unanswered or self.row_offset or self.first_epoch or self.gone_epoch
        )
        return self.stored and not (touched or self.replaces or self.has_shown or self.staged)

    def settle(self, *, is_interrupted: bool) -> None:
        """Forgets what was read and will not be emitted, so that another fetch actor can go on.

        Args:
            is_interrupted: whether something is being read or stored: of a file that replaces all is lost with that.
        """
        self.is_reading = False
        if is_interrupted or not self.replaces:
            self.read_to = self._emitted_to
            self.staged, self.bad, self.ending = [], [], None

    @property
    def path_key(self) -> PathKey:
        return self.file.source, self.file.path

    @property
    def key(self) -> FileKey:
        return self.file.source, self.file.path, self.file.version

    @property
    def state_key(self) -> bytes:
        """The key of its rows in `queue` and `ledger`."""
        return encode_key(*self.key)

    def reading_order(self) -> tuple[bool, int, datetime, str]:
        """Of several versions of a path the one with rows is being read, or else the first that was listed."""
        return self.row_offset == 0, self.listed_epoch, self.file.last_modified, self.file.path

    @property
    def vnode(self) -> int:
        return vnode_of(self.file.path)

    def quarantine_key(self, bad: BadRecord) -> bytes:
        """The key of a bad record's row in `quarantine`."""
        return encode_key(*self.key, bad.row)

    def quarantine_row(self, bad: BadRecord) -> dict[str, object]:
        """A bad record, as it is kept."""
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
        """What a restart must know to go on."""
        return self._row() | {
            "row_offset": self.row_offset,
            "anchor_row": self.anchor.anchor_row,
            "anchor_byte": self.anchor.anchor_byte,
            "error": None,
        }

    def ledger_row(self, ending: Ending, *, done_epoch: int, changed_epoch: int | None) -> dict[str, object]:
        """The file's story, for ever."""
        return self._row() | {
            "status": ending.status,
            "rows_read": self.row_offset,
            "done_epoch": done_epoch,
            "changed_epoch": changed_epoch,
            "gone_epoch": done_epoch if ending.is_gone else self.gone_epoch,
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
