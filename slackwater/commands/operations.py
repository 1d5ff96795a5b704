"""The commands that are operations of a run; `Pause`, `Resume` and `Throttle` are mutations of a barrier instead.

A new command is one class here, and one function in `slackwater/cli/commands`.  What works on a root is imported where
it is used: most often the command line only asks, and a run does the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from slackwater.status.text import counted
from state.errors import CommandRefusedError, UsageError
from state.location import Location
from state.ownership.command import Answer, Command, Epoch
from state.upkeep.branches import is_branch_tag
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import check_tag_name, delete_tag, put_tag
from state.vnode import fetcher_bounds

if TYPE_CHECKING:
    from state.lance.lance_root import LanceRoot
    from state.store.store import StateStore
    from state.upkeep.vacuum import Vacuumed


class RunOperations(Protocol):
    """The operations of a run; each returns when it is committed.

    Raises:
        CommandRefusedError: the run ends.
    """

    def stop(self) -> None: ...

    def rescale(self, fewest: int, most: int) -> None: ...

    def retry(self, source: str | None, file: str | None) -> int: ...

    def retry_view(self, name: str) -> None: ...

    def release(self) -> None: ...

    def allow_removals(self, source: str | None) -> int: ...

    def reingest(self, file: str, source: str | None) -> int: ...

    def forget(self, file: str, source: str | None) -> int: ...

    def read_table(self, name: str) -> None: ...

    def clear_quarantine(self, source: str | None, epoch: int) -> int: ...

    def put_tag(self, name: str, epoch: int) -> None: ...

    def delete_tag(self, name: str) -> None: ...

    def vacuum(self) -> Vacuumed: ...


class Operation(Command, ABC):
    """A command that a run carries out."""

    @abstractmethod
    def on_run(self, run: RunOperations) -> Answer:
        """Carries the command out in a run."""


class RootOperation(Operation):
    """A command that needs no run: when nothing runs, the process that asks takes the root and carries it out."""

    @abstractmethod
    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        """Carries the command out without a run.

        Args:
            store: the owner's handle.
            root: the place of the store.
        """


@dataclass(frozen=True)
class StopCommand(Operation, kind="stop"):
    """Ends the run after a last epoch."""

    def on_run(self, run: RunOperations) -> Answer:
        run.stop()
        return Answer(True, "stopped after a last epoch")


@dataclass(frozen=True, kw_only=True)
class RescaleCommand(Operation, kind="rescale"):
    """Changes the number of fetch actors.

    Args:
        fewest, most: equal, or the bounds between which the run chooses by its backlog.
    """

    fewest: int
    most: int

    def __post_init__(self) -> None:
        fetcher_bounds((self.fewest, self.most))

    def on_run(self, run: RunOperations) -> Answer:
        run.rescale(self.fewest, self.most)
        if self.fewest < self.most:
            return Answer(True, f"{self.fewest} to {self.most} fetch actors, chosen by the backlog")
        return Answer(True, counted(self.fewest, "fetch actor"))


@dataclass(frozen=True, kw_only=True)
class RetryCommand(RootOperation, kind="retry"):
    """Puts quarantined files back into the queue.

    Args:
        source: only files of this source.
        file: only files with this name: a whole URL, an absolute path, or a glob over the paths below a source.
    """

    source: str | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if self.file is not None:
            object.__setattr__(self, "file", _without_secrets(self.file))

    def on_run(self, run: RunOperations) -> Answer:
        return self._answer(run.retry(self.source, self.file))

    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        from slackwater.commands.retry import requeue

        return self._answer(requeue(store, root.clock, self.source, self.file))

    def _answer(self, files: int) -> Answer:
        return _files_answer(files, "in the queue again") if files else Answer(True, "nothing to retry", {"files": 0})


@dataclass(frozen=True, kw_only=True)
class RetryViewCommand(RootOperation, kind="retry_view"):
    """Builds a failed view anew, or one that closes windows, so that it gets the late rows.

    Args:
        view: its name.
    """

    view: str

    def on_run(self, run: RunOperations) -> Answer:
        run.retry_view(self.view)
        return Answer(True, f"view {self.view} is built anew; `status` shows its progress")

    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        from slackwater.commands.retry import forgive_view

        forgive_view(store, root.clock, self.view)
        return Answer(True, f"the next run builds view {self.view} anew")


@dataclass(frozen=True)
class ReleaseCommand(RootOperation, kind="release"):
    """Opens the gate: the rows that violate expectations now are accepted."""

    def on_run(self, run: RunOperations) -> Answer:
        run.release()
        return Answer(True, "the rows that violate expectations now are accepted")

    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        from slackwater.commands.release import release

        release(store, root.clock)
        return Answer(True, "the rows that violate expectations now are accepted")


@dataclass(frozen=True, kw_only=True)
class AllowRemovalsCommand(Operation, kind="allow_removals"):
    """Lets missing files leave the views whose removal is paused.

    Args:
        source: only files of this source.
    """

    source: str | None = None

    @property
    def why_run(self) -> str:
        return (
            "`allow-removals` needs a run, which lists the files; start the pipeline, and ask when `status` shows the "
            "paused removals, or start it with on_change=Replace(max_removed_share=...)"
        )

    def on_run(self, run: RunOperations) -> Answer:
        files = run.allow_removals(self.source)
        if not files:
            return Answer(True, "no removal is paused", {"files": 0})
        may = f"{counted(files, 'missing file')} may leave the views"
        return Answer(
            True, f"{may}, when the next listing lacks {'it' if files == 1 else 'them'}, too", {"files": files}
        )


@dataclass(frozen=True, kw_only=True)
class Correction(Operation):
    """A command that changes the rows of files in the views.

    Args:
        file: a whole URL, an absolute path, or a glob over the paths below a source.
        source: only files of this source.
    """

    file: str
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", _without_secrets(self.file))

    @property
    def why_run(self) -> str:
        return f"`{self.kind}` needs a run, which computes the views; start the pipeline, and ask again"


class ReingestCommand(Correction, kind="reingest"):
    """Reads files again, and replaces their rows."""

    def on_run(self, run: RunOperations) -> Answer:
        return _files_answer(run.reingest(self.file, self.source), "read again")


class ForgetCommand(Correction, kind="forget"):
    """Deletes the rows of files from all views."""

    def on_run(self, run: RunOperations) -> Answer:
        return _files_answer(run.forget(self.file, self.source), "forgotten")


@dataclass(frozen=True, kw_only=True)
class ReadTableCommand(Operation, kind="read_table"):
    """Reads a static table whose stored rows were replaced.

    Args:
        table: its name.
    """

    table: str

    def on_run(self, run: RunOperations) -> Answer:
        run.read_table(self.table)
        return Answer(True, f"table {self.table} is read again")


@dataclass(frozen=True, kw_only=True)
class ClearQuarantineCommand(RootOperation, kind="clear_quarantine"):
    """Deletes the content of bad records.

    Args:
        epoch: only records that were quarantined up to this epoch.
        source: only records of this source.
    """

    epoch: Epoch
    source: str | None = None

    def on_run(self, run: RunOperations) -> Answer:
        return self._answer(run.clear_quarantine(self.source, self.epoch))

    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        from state.upkeep.quarantine import clear_quarantine

        return self._answer(clear_quarantine(store, self.source, self.epoch))

    def _answer(self, records: int) -> Answer:
        verb = "is" if records == 1 else "are"
        return Answer(True, f"{counted(records, 'bad record')} {verb} cleared", {"records": records})


@dataclass(frozen=True, kw_only=True)
class TagCommand(RootOperation, kind="tag"):
    """Gives an epoch a name, or deletes a name.

    Args:
        name: the tag.
        epoch: the epoch to name; None to delete the tag.
    """

    name: str
    epoch: Epoch | None

    def __post_init__(self) -> None:
        check_tag_name(self.name)

    def on_run(self, run: RunOperations) -> Answer:
        if self.epoch is None:
            run.delete_tag(self.name)
        else:
            run.put_tag(self.name, self.epoch)
        return self._answer()

    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        if self.epoch is None:
            delete_tag(store, self.name)
        else:
            put_tag(store, self.name, self.epoch)
        return self._answer()

    def _answer(self) -> Answer:
        is_gone = self.epoch is None
        return Answer(True, f"tag {self.name} is deleted" if is_gone else f"epoch {self.epoch} is tagged {self.name}")


@dataclass(frozen=True, kw_only=True)
class BranchTagCommand(TagCommand, kind="branch_tag"):
    """Notes a branch, or its end, by a tag that users cannot give.

    Args:
        name: the tag, see `state.upkeep.branches`.
        epoch: the epoch of the branch; None to delete the tag.
    """

    def __post_init__(self) -> None:
        if not is_branch_tag(self.name):
            raise UsageError(f"{self.name!r} is not the tag of a branch")


@dataclass(frozen=True, kw_only=True)
class VacuumCommand(RootOperation, kind="vacuum"):
    """Deletes older epochs, and the files that only they use.

    Args:
        keep_s: epochs of this many last seconds are kept.
        keep_epochs: at least this many last epochs are kept.

    A run keeps the epochs that its settings name; these arguments are for a root without a run.
    """

    keep_s: float | None = None
    keep_epochs: int | None = None

    def __post_init__(self) -> None:
        if self.keep_s is not None and not self.keep_s >= 0:
            raise UsageError(f"vacuum: keep_s={self.keep_s}: give seconds, not below zero")
        if self.keep_epochs is not None and self.keep_epochs < 1:
            raise UsageError(f"vacuum: keep_epochs={self.keep_epochs}: at least the last epoch stays")

    def on_run(self, run: RunOperations) -> Answer:
        if self != VacuumCommand():
            raise CommandRefusedError(
                "a running pipeline keeps the epochs that its settings name: leave out --keep-s and --keep-epochs"
            )
        return self._answer(run.vacuum())

    def on_root(self, store: StateStore, root: LanceRoot) -> Answer:
        from slackwater.commands.maintenance import vacuum

        given = {name: value for name, value in vars(self).items() if value is not None}
        return self._answer(vacuum(store, root, replace(RetentionSettings(), **given)))

    def _answer(self, gone: Vacuumed) -> Answer:
        text = f"{gone.versions:,} versions and {gone.datasets:,} datasets are deleted, {gone.bytes:,} bytes"
        if gone.left:
            text += f"; these objects are not Slackwater's, and stay: {', '.join(gone.left)}"
        return Answer(True, text, {"versions": gone.versions, "datasets": gone.datasets, "bytes": gone.bytes})


def _files_answer(files: int, state: str) -> Answer:
    return Answer(True, f"{counted(files, 'file')} {'is' if files == 1 else 'are'} {state}", {"files": files})


def _without_secrets(file: str) -> str:
    """A command is stored: a URL goes into it without its secrets."""
    return Location(file).url if "://" in file else file
