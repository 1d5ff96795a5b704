"""Checks of commands: the effect of each, and its answer."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from actors.files import FileKey, PathKey
from actors.protocol.barrier import Pause, Resume
from slackwater.commands.operations import (
    ClearQuarantineCommand,
    ForgetCommand,
    ReingestCommand,
    RetryCommand,
    StopCommand,
    TagCommand,
)
from state.ownership.command import Answer, Command
from state.tables.records import EpochRecord, Head
from state.tables.tables import REMOVED_STATUSES
from tests.simulation.memory.file_tables import FileTables, file_of, path_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken

_A_BUG = re.compile(r"[A-Za-z]*(Error|Exception|Interrupt): ")


@dataclass
class _Asked:
    """A command, and its effects so far.

    Args:
        command: the command.
        due: file versions, or objects, that it must reach before it is done.
        retried: file versions that it has put into the queue.
        is_answered: whether it is done.
        resumed: the number of times that the process itself had let the flow continue before.
    """

    command: Command
    due: set[Any] = field(default_factory=set)
    retried: set[FileKey] = field(default_factory=set)
    is_answered: bool = False
    resumed: int = 0


class CommandChecker:
    """Checks the effects of commands (G1, G3, G4, G6).

    A quarantined file is retried once for each command, a forgotten one is read again only if a user says so, a bad
    record keeps its content until a user clears it, a tag stays until a user deletes it, and a paused run commits no
    rows.

    Attributes:
        retried_since_mark: file versions that were finished at the last mark or later, and retried since.
    """

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}
        self._tables = FileTables.of(None)
        self._head = Head(0, 0)
        self._tags: dict[str, int | None] = {}
        self._paused_run, self._resumed = "", 0
        self._retried: set[bytes] = set()
        self.retried_since_mark: set[FileKey] = set()

    def begin(self, tables: FileTables, head: Head, above: CommandChecker) -> None:
        """Begins with the first version of a branch; the commands to the root above it are over here."""
        self._tables, self._head = tables, head
        self._asked = {f"above {name}": _Asked(each.command, is_answered=True) for name, each in above._asked.items()}

    # -- of users --------------------------------------------------------------------------------------------------

    def on_asked(self, name: str, command: Command) -> None:
        """A command is on its way."""
        asked = self._asked[name] = _Asked(command, resumed=self._resumed)
        rows = [*self._tables.ledger.values(), *self._tables.queue.values()]
        named = [row for row in rows if _is_named(command, row)]
        match command:
            case RetryCommand():
                asked.due = {file_of(row) for row in named} & _retriable(self._tables)
            case ForgetCommand():
                asked.due = {file_of(row) for row in named}
                asked.due -= {file for file in asked.due if not _is_in_views(file, self._tables)}
            case ReingestCommand():
                asked.due = {path_of(row) for row in named}
            case TagCommand():
                self._tags.pop(command.name, None)
            case Resume():
                self._paused_run = ""

    def on_resumed(self) -> None:
        """The process itself lets the flow continue."""
        self._paused_run = ""
        self._resumed += 1

    def on_mark(self) -> None:
        """A run gets a new mark: it has caught up when all that waits now is finished."""
        self.retried_since_mark.clear()

    def on_answered(self, name: str, answer: Answer, *, is_of_its_run: bool = True, has_stopped: bool = False) -> None:
        """An answer is there: all that it says is committed.

        Args:
            name: the id of the command.
            answer: the answer.
            is_of_its_run: whether the run answers that was asked.
            has_stopped: whether that run has stopped gracefully.
        """
        asked = self._asked[name]
        asked.is_answered = answer.done
        if _A_BUG.match(answer.text):
            raise PromiseBroken("no bug", f"{asked.command}: {answer.text}")
        if not answer.done:
            return
        if not is_of_its_run:
            raise PromiseBroken("G5", f"{asked.command} was done by another run than the one that was asked")
        match asked.command:
            case RetryCommand():
                missed = asked.due & _retriable(self._tables)
                self._require_done(asked, missed)
            case StopCommand() if not has_stopped:
                raise PromiseBroken("G4", f"the answer is {answer.text!r}, and the run has not stopped")
            case ForgetCommand() | ReingestCommand():
                self._require_done(asked, asked.due)
            case ClearQuarantineCommand(epoch=epoch):
                kept = [
                    row["path"] for row in self._tables.quarantine.values() if row["reason"] and row["epoch"] <= epoch
                ]
                self._require_done(asked, kept)
            case TagCommand(name=tag, epoch=epoch) if not self._is_under_way(TagCommand):
                if self._head.tags.get(tag) != epoch:
                    raise PromiseBroken("G3", f"{asked.command} is done, and the tags are {dict(self._head.tags)}")
                self._tags[tag] = epoch
            case Pause(outcome=outcome) if answer.text == outcome and not self._is_under_way(Resume):
                if asked.resumed == self._resumed:
                    self._paused_run = self._head.run

    # -- of versions -----------------------------------------------------------------------------------------------

    def check(self, tables: FileTables, head: Head, record: EpochRecord | None) -> None:
        """Checks the next version of the store.

        Args:
            tables: its rows about files.
            head: its head.
            record: the epoch that it commits; None if it commits none.
        """
        before, self._tables, self._head = self._tables, tables, head
        self._retried = {key for key, row in before.ledger.items() if _was_retried(key, row, tables)}
        for key in self._retried:
            self._on_retried(before.ledger[key])
        for asked in self._asked.values():
            if isinstance(asked.command, ForgetCommand):
                asked.due -= {file for file in asked.due if not _is_in_views(file, tables)}
            elif isinstance(asked.command, ReingestCommand):
                asked.due -= {path for path in asked.due if _is_read_again(path, before, tables)}
        for key, row in tables.ledger.items():
            if row["status"] == "forgotten" and row["deleted_epoch"] is None and key in tables.queue:
                self._require_wanted(row)
        self._check_quarantine(before, tables)
        for tag, epoch in self._tags.items():
            if head.tags.get(tag) != epoch:
                raise PromiseBroken("G3", f"tag {tag} was at epoch {epoch}, and the tags are {dict(head.tags)}")
        if record is not None and head.run and head.run == self._paused_run and record.counts.rows:
            raise PromiseBroken("G4", f"the run is paused, and epoch {record.epoch} has {record.counts.rows} rows")

    def is_retried(self, key: bytes) -> bool:
        """True for a quarantined version that the last version of the store has put into the queue."""
        return key in self._retried

    def is_reread(self, row: Row) -> bool:
        """True for a version whose object a user has wanted to be read again."""
        return self._is_asked(ReingestCommand, row)

    def is_forgotten(self, row: Row) -> bool:
        """True for a version whose object a user has forgotten."""
        return self._is_asked(ForgetCommand, row)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _on_retried(self, row: Row) -> None:
        """Finds the command behind a retry: each one retries a version once."""
        file = file_of(row)
        for asked in self._asked.values():
            is_for_it = isinstance(asked.command, RetryCommand) and _is_named(asked.command, row)
            if is_for_it and not asked.is_answered and file not in asked.retried:
                asked.retried.add(file)
                self.retried_since_mark.add(file)
                for each in self._asked.values():
                    if isinstance(each.command, RetryCommand):
                        each.due.discard(file)
                return
        raise PromiseBroken("G1", f"{row['path']} was in quarantine, and is read again more often than it was retried")

    def _check_quarantine(self, before: FileTables, tables: FileTables) -> None:
        for key, row in tables.quarantine.items():
            earlier = before.quarantine.get(key)
            was_kept = earlier is None or earlier["reason"] is not None
            if row["reason"] is None and was_kept and not (earlier and self._is_cleared(earlier["epoch"])):
                raise PromiseBroken(
                    "G6", f"a bad record of {row['path']} has lost its content, and no command cleared it"
                )

    def _require_wanted(self, row: Row) -> None:
        if not self.is_reread(row):
            raise PromiseBroken("G1", f"{row['path']} was forgotten, and is read again")

    def _require_done(self, asked: _Asked, missed: Collection[object]) -> None:
        if missed:
            raise PromiseBroken("G1", f"{asked.command} is done, and not for {sorted(map(str, missed))}")

    def _is_cleared(self, epoch: int) -> bool:
        """True if a user has let go of the bad records of an epoch."""
        asked = (each.command for each in self._asked.values())
        return any(isinstance(each, ClearQuarantineCommand) and epoch <= each.epoch for each in asked)

    def _is_asked(self, kind: type[Command], row: Row) -> bool:
        return any(isinstance(each.command, kind) and _is_named(each.command, row) for each in self._asked.values())

    def _is_under_way(self, kind: type[Command]) -> bool:
        """Whether another command of a kind has no answer."""
        return any(isinstance(each.command, kind) and not each.is_answered for each in self._asked.values())


def _is_named(command: Command, row: Row) -> bool:
    """Whether a command is about an object; stories name whole paths."""
    file, source = getattr(command, "file", None), getattr(command, "source", None)
    return file in (None, row["path"]) and source in (None, row["source"])


def _retriable(tables: FileTables) -> set[FileKey]:
    """The last version of each path, if it is quarantined and not known to have changed.

    None of the path is in the queue, and the views have no other one.
    """
    latest: dict[PathKey, Row] = {}
    for row in tables.ledger.values():
        if row["status"] == "quarantined":
            before = latest.get(path_of(row))
            latest[path_of(row)] = (
                row if before is None else max(before, row, key=lambda each: int(each["listed_epoch"]))
            )
    taken = {path_of(row) for row in tables.queue.values()}
    for row in tables.ledger.values():
        is_in_views = row["rows_read"] and row["status"] not in ("quarantined", *REMOVED_STATUSES)
        last = latest.get(path_of(row))
        if is_in_views or (last is not None and row["listed_epoch"] > last["listed_epoch"]):
            taken.add(path_of(row))
    return {file_of(row) for path, row in latest.items() if path not in taken and row["changed_epoch"] is None}


def _was_retried(key: bytes, earlier: Row, tables: FileTables) -> bool:
    """Whether a quarantined version has left the ledger for the queue; it may have ended again since."""
    if earlier["status"] != "quarantined":
        return False
    row = tables.ledger.get(key)
    if row is None:
        return key in tables.queue
    return row is not earlier and not row["replaces"] and bool(row["attempts"] > earlier["attempts"])


def _is_in_views(file: FileKey, tables: FileTables) -> bool:
    return any(
        file_of(row) == file and offset and row.get("status") not in REMOVED_STATUSES
        for row, offset in tables.offsets()
    )


def _is_read_again(path: PathKey, before: FileTables, tables: FileTables) -> bool:
    """True if an object is in the queue, to replace its rows, or has been since the last version of the store.

    An object that is deleted in that epoch has only the note of that.
    """
    if any(path_of(row) == path and row["replaces"] for row in tables.queue.values()):
        return True
    return any(
        path_of(row) == path
        and before.ledger.get(key) is not row
        and (row["replaces"] or _was_in_vain(row) or row["deleted_epoch"] is not None)
        for key, row in tables.ledger.items()
    )


def _was_in_vain(row: Row) -> bool:
    """Whether a version with rows was read once more in vain: it stays as it was, with the error of that reading."""
    return bool(row["rows_read"]) and row["error"] is not None
