"""Every error that Slackwater raises on purpose, as one tree.  A leaf says what the caller should do.

    SlackwaterError
    ├── UsageError                     the call is wrong: correct it
    │   ├── SettingsError              an option has an unknown name or an impossible value
    │   ├── SchemaError                a schema cannot be read or cannot be carried to Spark
    │   ├── ViewError                  a view cannot be built: correct its query
    │   │   └── NotIncrementalError    the view cannot be maintained epoch by epoch: the operator is named
    │   ├── DefinitionChangedError     the root has other sources or views: declare those, or take another root
    │   └── RootMismatchError          the root belongs to another pipeline, or is of another format: take another root
    ├── NotFoundError                  what was asked for does not exist: look at the list that the message names
    │   ├── StoreNotFoundError         no pipeline has committed anything at this root
    │   ├── EpochNotFoundError         the epoch is not, or no longer, retained
    │   │   └── EpochExpiredError      it may have been: take a later one; a tag keeps an epoch
    │   └── ViewNotFoundError          no such view at that epoch
    ├── StorageError                   an object store does not do what it was asked
    │   ├── BucketNotFoundError        create the bucket or directory, or correct the URL
    │   ├── QueueNotFoundError         create the queue, or correct its URL or region
    │   ├── AccessDeniedError          correct the credentials or the permissions
    │   └── StorageUnavailableError    the store did not answer in time: try again later
    │       └── StorageFullError       there is no room: make some, or raise the quota
    ├── BadInputError                  a file or record is bad and its source says `fail`: mend it, or quarantine it
    ├── OwnedError                     another process runs on this root: wait, stop it, or take over
    ├── FencedError                    another process has taken over: this one stops for good
    ├── CommitRefusedError             nothing was written: recover from what is committed
    ├── CommitUnknownError             the outcome of a commit is not known: read back before deciding
    ├── RunFailedError                 a part of a run died: start the run again, it goes on where it stopped
    │   ├── SparkLostError             the Spark application is gone: start a new one
    │   └── SparkNotStartedError       there is no Spark application: make room in the cluster, or ask for less
    ├── CommandRefusedError            the owner of a root does not do what a command asks: its answer says why
    ├── CommandUnansweredError         the owner did not answer in time: look at `status`, and ask again
    └── ProtocolError                  a bug in Slackwater: report it

A message names the thing, says what is wrong with it, and what to do next.
"""

from __future__ import annotations


class SlackwaterError(Exception):
    """The root of the tree."""


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


class RootMismatchError(UsageError):
    """The root belongs to another pipeline, or to another format of the store."""


class NotFoundError(SlackwaterError):
    """What was asked for does not exist."""


class StoreNotFoundError(NotFoundError):
    """No pipeline has committed anything at this root."""


class EpochNotFoundError(NotFoundError):
    """The epoch is not, or no longer, retained."""


class EpochExpiredError(EpochNotFoundError):
    """The epoch is older than what is retained, or was while it was read."""


class ViewNotFoundError(NotFoundError):
    """No such view at that epoch."""


class StorageError(SlackwaterError):
    """An object store does not do what it was asked."""


class BucketNotFoundError(StorageError):
    """The bucket or directory does not exist."""


class QueueNotFoundError(StorageError):
    """The queue of notifications does not exist."""


class AccessDeniedError(StorageError):
    """The store refuses these credentials."""


class StorageUnavailableError(StorageError):
    """The store did not answer within the limit of retries."""


class StorageFullError(StorageUnavailableError):
    """The disk or the store has no room left."""


class BadInputError(SlackwaterError):
    """A file or record cannot be read, or a file has changed, and its source is declared to fail then."""


class OwnedError(SlackwaterError):
    """Another living process runs on this root."""


class FencedError(SlackwaterError):
    """Another process has taken the root over; this one stops for good."""


class CommitRefusedError(SlackwaterError):
    """A commit was refused and wrote nothing."""


class CommitUnknownError(SlackwaterError):
    """The outcome of a commit is not known."""


class RunFailedError(SlackwaterError):
    """A part of a run died."""


class SparkLostError(RunFailedError):
    """The Spark application is gone."""


class SparkNotStartedError(RunFailedError):
    """There is no Spark application: make room in the cluster, or ask for less; no file is to blame."""


class CommandRefusedError(SlackwaterError):
    """What a command asks is not done; the message says why."""


class CommandUnansweredError(SlackwaterError):
    """The owner of a root did not answer a command in time."""


class ProtocolError(SlackwaterError):
    """An invariant of the barrier protocol is broken: a bug in Slackwater."""
