"""The operations of a run, each defined once: a dataclass with its arguments, its work, and its answer.

From the class follow the command in the store, the execution in a run and on a root without one, and the command of the
command line (`line`).  `RunMethods` has the operations that a program calls.  `Pause`, `Resume` and `Throttle` are
mutations of a barrier instead.  The work on a root is imported where it is used: most often the command line only asks,
and a run does the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Generic, Protocol, TypeVar

from slackwater.status.text import counted
from state.errors import CommandRefusedError, UsageError
from state.location import Location
from state.ownership.command import Answer, ArgumentLine, Command, CommandLine, Epoch, argument
from state.upkeep.branches import is_branch_tag
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import check_tag_name, delete_tag, put_tag
from state.vnode import VNODES, fetcher_bounds

if TYPE_CHECKING:
    from state.lance.lance_root import LanceRoot
    from state.store.store import StateStore
    from state.upkeep.vacuum import Vacuumed

Result = TypeVar("Result")

_FILES = ArgumentLine("the files: a whole URL or path, or a glob below a source", metavar="PATH|GLOB", names_files=True)
_SOURCE = ArgumentLine("only files of this source", option="--source")


class Requests(Protocol):
    """The requests to the actors of a run, see `slackwater.running.requests`."""

    def rescale(self, fewest: int, most: int) -> None: ...

    def retry(self, source: str | None, file: str | None) -> int: ...

    def allow_removals(self, source: str | None) -> int: ...


class FileCorrections(Protocol):
    """The corrections of files in a run, see `slackwater.running.corrections`."""

    def reingest(self, file: str, source: str | None) -> int: ...

    def forget(self, file: str, source: str | None) -> int: ...

    def read_table(self, name: str) -> None: ...


class RunViews(Protocol):
    """The views of a run, see `slackwater.running.declared_views`."""

    def retry(self, name: str) -> None: ...

    def release(self) -> None: ...


class RootWork(Protocol):
    """Work on the root by the coordinator, which owns it."""

    def change(self, action: Callable[[StateStore], Result]) -> Result: ...

    def vacuum(self) -> Vacuumed: ...


class OperatedRun(Protocol):
    """A run as operations use it; each call returns when its work is committed.

    Raises:
        CommandRefusedError: the run ends.
    """

    @property
    def requests(self) -> Requests: ...

    @property
    def corrections(self) -> FileCorrections: ...

    @property
    def declared(self) -> RunViews: ...

    @property
    def owner(self) -> RootWork: ...

    def stop(self) -> None: ...

    def put_tag(self, name: str, epoch: int) -> None: ...


class Operation(Command, ABC, Generic[Result]):
    """A command that a run carries out."""

    @abstractmethod
    def on_run(self, run: OperatedRun) -> Result:
        """Carries the operation out in a run."""

    @abstractmethod
    def answer(self, result: Result) -> Answer:
        """The answer to the process that has asked."""


class RootOperation(Operation[Result]):
    """A command that needs no run: when nothing runs, the process that asks takes the root and carries it out."""

    @abstractmethod
    def on_root(self, store: StateStore, root: LanceRoot) -> Result:
        """Carries the operation out without a run.

        Args:
            root: the place of the store.
        """

    def answer_on_root(self, result: Result) -> Answer:
        """The answer of a process that has carried the operation out without a run."""
        return self.answer(result)


@dataclass(frozen=True)
class StopCommand(Operation[None], kind="stop"):
    """Ends the run after a last epoch."""

    line = CommandLine("Steer a run", "Stop a running pipeline after a last epoch.")

    def on_run(self, run: OperatedRun) -> None:
        run.stop()

    def answer(self, result: None) -> Answer:
        return Answer(True, "stopped after a last epoch")


@dataclass(frozen=True, kw_only=True)
class RescaleCommand(Operation[None], kind="rescale"):
    """Changes the number of fetch actors.

    Args:
        fewest, most: equal, or the bounds between which the run chooses by its backlog.
    """

    line = CommandLine(
        "Steer a run",
        "Change the number of fetch actors of a running pipeline.  With `1-8` it chooses the number by its backlog.",
    )
    fewest: int
    most: int

    @classmethod
    def of_line(
        cls, fetchers: Annotated[str, ArgumentLine("a number, or the fewest and the most", metavar="N|N-M")]
    ) -> RescaleCommand:
        fewest, dash, most = fetchers.partition("-")
        numbers = (fewest, most if dash else fewest)
        if not all(number.isascii() and number.isdigit() for number in numbers):
            raise UsageError(
                f"{fetchers!r} is not a valid number of fetch actors: give one from 1 to {VNODES}, or two, for example "
                "1-8"
            )
        return cls(fewest=int(numbers[0]), most=int(numbers[1]))

    def __post_init__(self) -> None:
        fetcher_bounds((self.fewest, self.most))

    def on_run(self, run: OperatedRun) -> None:
        run.requests.rescale(self.fewest, self.most)

    def answer(self, result: None) -> Answer:
        if self.fewest < self.most:
            return Answer(True, f"{self.fewest} to {self.most} fetch actors, chosen by the backlog")
        return Answer(True, counted(self.fewest, "fetch actor"))


@dataclass(frozen=True, kw_only=True)
class RetryCommand(RootOperation[int], kind="retry"):
    """Puts quarantined files back into the queue.

    Args:
        source: only files of this source.
        file: only files with this name: a whole URL, an absolute path, or a glob over the paths below a source.
    """

    line = CommandLine(
        "Correct",
        "Read quarantined files again, or rebuild a failed view.\n\n"
        "A file continues at the row where reading failed.  Single bad records (see `quarantine`) are not retried: the "
        "views hold the rows around them.  Export the records, correct them, and upload them as a new file.  If you "
        'correct a file in place and its source has on_change="append", all of the file is read again: remove the rows '
        "that were read.\n\n"
        "A view is built from all rows of its sources: first remove the rows that made it fail, for example with "
        '`forget`.  A view with emit="on_close" or expire="by_watermark" can be rebuilt without a failure, to accept '
        "its late rows.",
    )
    source: str | None = argument(_SOURCE, default=None)
    file: str | None = argument(replace(_FILES, option="--file"), default=None)

    @classmethod
    def of_line(
        cls,
        view: Annotated[
            str | None,
            ArgumentLine("rebuild this failed view, instead of files", option="--view", metavar="NAME"),
        ] = None,
        **files: str | None,
    ) -> Command:
        if view is None:
            return cls(**files)
        if any(each is not None for each in files.values()):
            raise UsageError("--view names a view, --source and --file name files: give one or the other")
        return RetryViewCommand(view=view)

    def __post_init__(self) -> None:
        if self.file is not None:
            object.__setattr__(self, "file", _without_secrets(self.file))

    def on_run(self, run: OperatedRun) -> int:
        return run.requests.retry(self.source, self.file)

    def on_root(self, store: StateStore, root: LanceRoot) -> int:
        from slackwater.commands.retry import requeue

        return requeue(store, root.clock, self.source, self.file)

    def answer(self, result: int) -> Answer:
        return _files_answer(result, "in the queue again") if result else Answer(True, "nothing to retry", {"files": 0})

    def answer_on_root(self, result: int) -> Answer:
        them = "it" if result == 1 else "them"
        return _files_answer(result, f"in the queue again; the next run reads {them}") if result else self.answer(0)


@dataclass(frozen=True, kw_only=True)
class RetryViewCommand(RootOperation[None], kind="retry_view"):
    """Rebuilds a failed view, or one that closes windows, so that it gets the late rows."""

    view: str

    def on_run(self, run: OperatedRun) -> None:
        run.declared.retry(self.view)

    def on_root(self, store: StateStore, root: LanceRoot) -> None:
        from slackwater.commands.retry import forgive_view

        forgive_view(store, root.clock, self.view)

    def answer(self, result: None) -> Answer:
        return Answer(True, f"view {self.view} is rebuilt; `status` shows its progress")

    def answer_on_root(self, result: None) -> Answer:
        return Answer(True, f"the next run rebuilds view {self.view}")


@dataclass(frozen=True, kw_only=True)
class Correction(Operation[int]):
    """A command that changes the rows of files in the views.

    Args:
        file: a whole URL, an absolute path, or a glob over the paths below a source.
        source: only files of this source.
    """

    file: str = argument(_FILES)
    source: str | None = argument(_SOURCE, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", _without_secrets(self.file))

    @property
    def why_run(self) -> str:
        return f"`{self.kind}` needs a run, which computes the views; start the pipeline, and ask again"


class ReingestCommand(Correction, kind="reingest"):
    """Reads files again, and replaces their rows."""

    line = CommandLine(
        "Correct",
        "Read files again, and replace their rows in all views.  Each file changes in one epoch.\n\n"
        "The source must be materialized, and the pipeline must run.",
    )

    def on_run(self, run: OperatedRun) -> int:
        return run.corrections.reingest(self.file, self.source)

    def answer(self, result: int) -> Answer:
        return _files_answer(result, "read again")


class ForgetCommand(Correction, kind="forget"):
    """Deletes the rows of files from all views."""

    line = CommandLine(
        "Correct",
        "Delete the rows of files from all views, in one epoch.  The files are not read again unless they change.\n\n"
        "The source must be materialized, and the pipeline must run.",
    )

    def on_run(self, run: OperatedRun) -> int:
        return run.corrections.forget(self.file, self.source)

    def answer(self, result: int) -> Answer:
        return _files_answer(result, "forgotten")


@dataclass(frozen=True)
class ReleaseCommand(RootOperation[None], kind="release"):
    """Opens the gate: the rows that violate expectations now are accepted."""

    line = CommandLine(
        "Correct",
        "Accept the rows that violate expectations now, and show the views that are held back.\n\n"
        "Later rows that violate are held back again.  To take the rows out instead, `forget` or `reingest` "
        "their files.",
    )

    def on_run(self, run: OperatedRun) -> None:
        run.declared.release()

    def on_root(self, store: StateStore, root: LanceRoot) -> None:
        from slackwater.commands.release import release

        release(store, root.clock)

    def answer(self, result: None) -> Answer:
        return Answer(True, "the rows that violate expectations now are accepted")


@dataclass(frozen=True, kw_only=True)
class AllowRemovalsCommand(Operation[int], kind="allow_removals"):
    """Permits the paused removal of missing files from the views.

    Args:
        source: only files of this source.
    """

    line = CommandLine(
        "Correct",
        "Permit the paused removal of missing files from the views.\n\n"
        'Removals of a source with on_change="replace" pause when too many of its files are missing at once.  Look '
        "first whether the files were deleted: an unmounted disk, a wrong prefix or wrong credentials look the same.  "
        "The files are removed if the next listing lacks them, too.",
    )
    source: str | None = argument(_SOURCE, default=None)

    @property
    def why_run(self) -> str:
        return (
            "`allow-removals` needs a run, which lists the files; start the pipeline, and ask when `status` shows the "
            "paused removals, or start it with another max_removed_share"
        )

    def on_run(self, run: OperatedRun) -> int:
        return run.requests.allow_removals(self.source)

    def answer(self, result: int) -> Answer:
        if not result:
            return Answer(True, "no removal is paused", {"files": 0})
        may = f"{counted(result, 'missing file')} may leave the views"
        return Answer(
            True, f"{may}, when the next listing lacks {'it' if result == 1 else 'them'}, too", {"files": result}
        )


@dataclass(frozen=True, kw_only=True)
class ReadTableCommand(Operation[None], kind="read_table"):
    """Reads a static table whose stored rows were replaced."""

    table: str

    def on_run(self, run: OperatedRun) -> None:
        run.corrections.read_table(self.table)

    def answer(self, result: None) -> Answer:
        return Answer(True, f"table {self.table} is read again")


@dataclass(frozen=True, kw_only=True)
class ClearQuarantineCommand(RootOperation[int], kind="clear_quarantine"):
    """Deletes the content of bad records.

    Args:
        epoch: only records that were quarantined up to this epoch.
        source: only records of this source.
    """

    epoch: Epoch
    source: str | None = None

    def on_run(self, run: OperatedRun) -> int:
        return run.owner.change(self._action())

    def on_root(self, store: StateStore, root: LanceRoot) -> int:
        return self._action()(store)

    def _action(self) -> Callable[[StateStore], int]:
        from state.upkeep.quarantine import clear_quarantine

        return partial(clear_quarantine, source=self.source, epoch=self.epoch)

    def answer(self, result: int) -> Answer:
        verb = "is" if result == 1 else "are"
        return Answer(True, f"{counted(result, 'bad record')} {verb} cleared", {"records": result})


@dataclass(frozen=True, kw_only=True)
class TagCommand(RootOperation[None], kind="tag"):
    """Gives an epoch a name, or deletes a name.

    Args:
        epoch: the epoch to name; None to delete the tag.
    """

    name: str
    epoch: Epoch | None

    def __post_init__(self) -> None:
        check_tag_name(self.name)

    def on_run(self, run: OperatedRun) -> None:
        if self.epoch is None:
            run.owner.change(partial(delete_tag, name=self.name))
        else:
            run.put_tag(self.name, self.epoch)

    def on_root(self, store: StateStore, root: LanceRoot) -> None:
        if self.epoch is None:
            delete_tag(store, self.name)
        else:
            put_tag(store, self.name, self.epoch)

    def answer(self, result: None) -> Answer:
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
class VacuumCommand(RootOperation["Vacuumed"], kind="vacuum"):
    """Deletes older epochs, and the files that only they use.

    Args:
        keep_s: epochs of this many last seconds are kept.
        keep_epochs: at least this many last epochs are kept.

    A run keeps the epochs that its settings name; these arguments are for a root without a run.
    """

    line = CommandLine(
        "Keep",
        "Delete older epochs, and the files that only they use.  Tagged and pinned epochs are kept.\n\n"
        "A running pipeline does this by itself, and at once with this command; it keeps the epochs that its settings "
        "name.  --keep-s and --keep-epochs are for a root without a running pipeline.",
        takeover=True,
    )
    keep_s: float | None = argument(
        ArgumentLine("keep the epochs of this many last seconds; by default 3,600", option="--keep-s"), default=None
    )
    keep_epochs: int | None = argument(
        ArgumentLine("keep at least this many last epochs; by default 100", option="--keep-epochs"), default=None
    )

    def __post_init__(self) -> None:
        if self.keep_s is not None and not self.keep_s >= 0:
            raise UsageError(f"vacuum: keep_s={self.keep_s}: give seconds, not below zero")
        if self.keep_epochs is not None and self.keep_epochs < 1:
            raise UsageError(f"vacuum: keep_epochs={self.keep_epochs}: at least the last epoch stays")

    def on_run(self, run: OperatedRun) -> Vacuumed:
        if self != VacuumCommand():
            raise CommandRefusedError(
                "a running pipeline keeps the epochs that its settings name: leave out --keep-s and --keep-epochs"
            )
        return run.owner.vacuum()

    def on_root(self, store: StateStore, root: LanceRoot) -> Vacuumed:
        from slackwater.commands.maintenance import vacuum

        given = {name: value for name, value in vars(self).items() if value is not None}
        return vacuum(store, root, replace(RetentionSettings(), **given))

    def answer(self, result: Vacuumed) -> Answer:
        text = (
            f"{counted(result.epochs_expired, 'epoch')} expired, {result.epochs_left:,} left; "
            f"{counted(result.versions, 'version')} and {counted(result.datasets, 'dataset')} deleted, "
            f"{counted(result.bytes, 'byte')}"
        )
        if result.left:
            text += f"; these objects are not Slackwater's, and stay: {', '.join(result.left)}"
        numbers = {
            "epochs_expired": result.epochs_expired,
            "epochs_left": result.epochs_left,
            "versions_deleted": result.versions,
            "datasets_deleted": result.datasets,
            "bytes_freed": result.bytes,
        }
        return Answer(True, text, numbers)


class RunMethods(ABC):
    """The operations that a program calls on a run."""

    @abstractmethod
    def _carry_out(self, operation: Operation[Result]) -> Result:
        """Carries an operation out in this process."""

    def rescale(self, *, fetchers: int | tuple[int, int]) -> None:
        """Changes the number of fetch actors, without a stop.

        Returns when they share the work, and the epoch of the barrier that changed the number is over.  A recovery
        keeps the number; the next start begins with its settings.

        Args:
            fetchers: 1 to 256; or the fewest and the most, between which the run chooses by its backlog.

        Raises:
            UsageError: the number is not valid.
            CommandRefusedError: the run ends.
        """
        fewest, most = fetcher_bounds(fetchers)
        self._carry_out(RescaleCommand(fewest=fewest, most=most))

    def retry(self, source: str | None = None, file: str | None = None) -> int:
        """Reads quarantined files again, each from the row where reading failed.

        Returns when the files are in the queue, and that is committed.

        Args:
            source: only files of this source.
            file: only files with this name: a whole URL, or a glob over the paths below a source.

        Returns:
            The number of files.

        Raises:
            NotFoundError: there is no such source, or no such quarantined file.
            CommandRefusedError: each named file has changed since it was quarantined, or the run ends.
        """
        return self._carry_out(RetryCommand(source=source, file=file))

    def retry_view(self, name: str) -> None:
        """Rebuilds a failed view from all rows of its sources, while the other views are maintained.

        A view with `emit="on_close"` or `expire="by_watermark"` can be rebuilt without a failure: then the late rows
        count, in closed windows too, and the views that read this view are rebuilt as well.

        The views that read it, and have failed with it, are rebuilt too.  Readers see the existing view until the
        rebuilt view is complete.  Returns when it is analysed.  To build it from another definition instead, call
        `add_view` with `replace=True`.

        Raises:
            ViewNotFoundError: it is not declared.
            CommandRefusedError: it has not failed, or a view that it reads has failed, or the run ends.
        """
        self._carry_out(RetryViewCommand(view=name))

    def release(self) -> None:
        """Opens the gate: the rows that violate expectations of views with `on_violation="hold"` now are accepted.

        Later rows that violate close it again.  Returns when the epoch is committed that opens it.

        Raises:
            CommandRefusedError: no view is held back, or the run ends.
        """
        self._carry_out(ReleaseCommand())

    def allow_removals(self, source: str | None = None) -> int:
        """Permits the paused retraction of the rows of missing files; see `Replace`.

        Returns when a listing is asked for; the rows of the files that it lacks, too, leave the views in the epochs
        after it.  `SourceStatus.paused_removals` is the number of paused files.

        Args:
            source: only files of this source.

        Returns:
            The number of files.

        Raises:
            NotFoundError: there is no such source.
            CommandRefusedError: the run ends, or recovers from a failure.
        """
        return self._carry_out(AllowRemovalsCommand(source=source))

    def reingest(self, file: str, source: str | None = None) -> int:
        """Reads files of materialized sources again, in their present versions.

        When all of a file is read, its rows replace its earlier rows in all views, in one epoch.  Returns when the
        files are in the queue, and that is committed.

        Args:
            file: a whole URL, an absolute path, or a glob over the paths below a source.
            source: only files of this source.

        Returns:
            The number of files.

        Raises:
            NotFoundError: there is no such source, no such file was listed, or a file does not exist any more.
            CommandRefusedError: their source is not materialized, a view cannot be corrected, or the run ends.
        """
        return self._carry_out(ReingestCommand(file=file, source=source))

    def forget(self, file: str, source: str | None = None) -> int:
        """Deletes the rows of files of materialized sources from all views, in one epoch; returns when it is committed.

        The files are not read again unless they change.  Arguments and errors as `reingest`.
        """
        return self._carry_out(ForgetCommand(file=file, source=source))


def _files_answer(files: int, state: str) -> Answer:
    return Answer(True, f"{counted(files, 'file')} {'is' if files == 1 else 'are'} {state}", {"files": files})


def _without_secrets(file: str) -> str:
    """A command is stored: a URL goes into it without its secrets."""
    return Location(file).url if "://" in file else file
