"""The tree of all errors that Slackwater raises on purpose.  Each class names the action of the caller.

    SlackwaterError
    ├── UsageError                     the call is wrong: correct it
    │   ├── SettingsError              an option has an unknown name or an impossible value
    │   ├── SchemaError                a schema cannot be read or cannot be carried to Spark
    │   ├── ViewError                  a view cannot be built: correct its query
    │   │   └── NotIncrementalError    the view cannot be maintained epoch by epoch: the operator is named
    │   ├── DefinitionChangedError     the root has other sources or views: declare those, or take another root
    │   ├── StoreCapabilityError       the store lacks a capability that a root or a table needs: use another store
    │   └── RootMismatchError          the root belongs to another pipeline, or has another format: use another root
    ├── NotFoundError                  the thing does not exist: choose one from the list that the message names
    │   ├── StoreNotFoundError         no pipeline has committed anything at this root
    │   ├── EpochNotFoundError         the epoch is not, or no longer, retained
    │   │   └── EpochExpiredError      the epoch has expired: choose a later one; a tag keeps an epoch
    │   └── ViewNotFoundError          no such view at that epoch
    ├── StorageError                   a request to an object store failed
    │   ├── BucketNotFoundError        create the bucket or directory, or correct the URL
    │   ├── QueueNotFoundError         create the queue, or correct its URL or region
    │   ├── AccessDeniedError          correct the credentials or the permissions
    │   ├── RemovalRefusedError        an object stays: no record shows that it is ours; look at it, and move it away
    │   ├── DamagedStoreError          a file of the store is torn: restore it, or read into a new root
    │   └── StorageUnavailableError    the store did not answer in time: try again later
    │       └── StorageFullError       no space is left: make room, or raise the quota
    ├── BadInputError                  a file or record is bad and its source says `fail`: repair it, or quarantine it
    ├── OwnedError                     another process runs on this root: wait, stop it, or take over
    ├── FencedError                    another process has taken over: this process must stop
    ├── CommitRefusedError             nothing was written: recover from what is committed
    ├── PublishError                   a published table refuses rows: correct the view, or publish to a new table
    ├── CommitUnknownError             the outcome of a commit is not known: read the store before the next commit
    ├── RunFailedError                 a part of a run died: start the run again, it continues where it stopped
    │   ├── NodeLostError              a node of the cluster is gone: the run continues on the others
    │   ├── RowsLostError              rows that waited for Spark are gone: the run reads them again
    │   ├── SparkLostError             the Spark application is gone: start a new one
    │   ├── ViewFailedError            the work on one view failed: correct the view or the file, and retry it
    │   ├── RayNotStartedError         Ray did not start on this machine: end other processes, or join a cluster
    │   └── SparkNotStartedError       Spark did not start: make room in the cluster, or request less
    ├── CommandRefusedError            the owner of a root refused a command: its answer says why
    ├── CommandUnansweredError         the owner did not answer in time: look at `status`, and send it again
    └── ProtocolError                  a bug in Slackwater: report it

A message names the thing, the fault, and the next step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from state.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable


class SlackwaterError(Exception):
    """The root of the tree.  Its text has no control characters: it may quote the name of a file, or a record."""

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n\t")


class UsageError(SlackwaterError):
    """The call is wrong: correct it."""


class SettingsError(UsageError):
    """An option has an unknown name or an impossible value."""


class SchemaError(UsageError):
    """A schema cannot be read, or has a type that cannot be carried to Spark."""


class ViewError(UsageError):
    """A view cannot be built: correct its query."""


class NotIncrementalError(ViewError):
    """A view cannot be maintained epoch by epoch; the message names the operator."""


class DefinitionChangedError(UsageError):
    """The root was written with other sources or views."""


class StoreCapabilityError(UsageError):
    """The store of a new root or table lacks a capability, for example conditional writes; nothing was written."""


class RootMismatchError(UsageError):
    """The root belongs to another pipeline, or to another format of the store."""


class NotFoundError(SlackwaterError):
    """The thing does not exist."""


class StoreNotFoundError(NotFoundError):
    """No pipeline has committed anything at this root."""


class EpochNotFoundError(NotFoundError):
    """The epoch is not, or no longer, retained."""


class EpochExpiredError(EpochNotFoundError):
    """The epoch is no longer retained, or expired while it was read."""


class ViewNotFoundError(NotFoundError):
    """The view does not exist at that epoch."""


class StorageError(SlackwaterError):
    """A request to an object store failed."""


class BucketNotFoundError(StorageError):
    """The bucket or directory does not exist."""


class QueueNotFoundError(StorageError):
    """The queue of notifications does not exist."""


class AccessDeniedError(StorageError):
    """The store refuses these credentials."""


class StorageUnavailableError(StorageError):
    """The store did not answer within the limit of retries."""


class StorageFullError(StorageUnavailableError):
    """The disk or the store has no space left."""


class DamagedStoreError(StorageError):
    """A file of the store is torn or holds other bytes."""


class RemovalRefusedError(StorageError):
    """An object was not deleted or replaced: no record of ours covers it, or its path leads over a link."""


class BadInputError(SlackwaterError):
    """A file or record cannot be read, or a file has changed, and the source is declared to fail in this case."""


class OwnedError(SlackwaterError):
    """Another living process runs on this root."""


class FencedError(SlackwaterError):
    """Another process has taken the root over; this process must stop."""


class CommitRefusedError(SlackwaterError):
    """A commit was refused and wrote nothing."""


class PublishError(SlackwaterError):
    """The library of a format refuses the rows of a view, or cannot use its published table."""


class CommitUnknownError(SlackwaterError):
    """The outcome of a commit is not known."""


class RunFailedError(SlackwaterError):
    """A part of a run died.

    Args:
        message: for people.
        views: the views that were computed when Spark or its executors died; one of them may be the reason.
    """

    def __init__(self, message: str, views: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.views = frozenset(views)


class NodeLostError(RunFailedError):
    """A node of the Ray cluster is gone, with a part of the run on it.  No file is the cause."""


class RowsLostError(RunFailedError):
    """Rows that waited for Spark are gone from Ray's object store.  The death of the actor that read them, if any, is
    an error of its own.
    """


class SparkLostError(RunFailedError):
    """The Spark application is gone."""


class ViewFailedError(RunFailedError):
    """The work on a view failed.  The run continues without the view.

    Args:
        view: its name.
        doing: the work, for the message: `"over the rows of an epoch"`.
        reason: the class and message of the error.
    """

    def __init__(self, view: str, doing: str, reason: str) -> None:
        super().__init__(f"view {view!r} failed {doing}: {reason}")
        self.view, self.reason = view, visible(reason)


class RayNotStartedError(RunFailedError):
    """Ray did not start on this machine in several attempts.  No file is the cause."""


class SparkNotStartedError(RunFailedError):
    """The Spark application did not start: make room in the cluster, or request less.  No file is the cause."""


class CommandRefusedError(SlackwaterError):
    """The owner of a root refused a command; the message says why."""


class CommandUnansweredError(SlackwaterError):
    """The owner of a root did not answer a command in time."""


class ProtocolError(SlackwaterError):
    """An invariant of the barrier protocol is broken: a bug in Slackwater."""
