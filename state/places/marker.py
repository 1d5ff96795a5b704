"""Marker: the object that says that a directory is a root or a published table of Slackwater.

A listing that meets the marker identifies the place by it, also through a link, a mount, a proxy or another pipeline.
Its name begins with `_`, so readers of Parquet, Delta, Iceberg and Lance skip it.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, dataclass, replace
from stat import S_ISREG
from typing import Any, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PermissionDeniedError, PreconditionError
from obstore.store import ObjectStore

from state.json_document import json_of
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.removal.objects import create, replace_version
from state.visible import one_line

MARKER = "_slackwater.json"
"""The name of the marker, in the directory of a root or of a table."""
_MOST_BYTES = 64 << 10


@dataclass(frozen=True)
class Marker:
    """The content of a marker.

    Args:
        kind: the kind of the directory.
        pipeline: the name of the pipeline; empty if it is not known.
        root: the URL of the root.
        view: the published view; empty for a root.
        version: the version of Slackwater that wrote it.
        identity: the identity of the root; empty if an earlier version wrote the marker.
    """

    kind: Literal["root", "table"]
    pipeline: str
    root: str
    view: str
    version: str
    identity: str = ""

    @property
    def words(self) -> str:
        """The place in a message.  Anybody can write a marker: its texts are shortened, and are printable."""
        pipeline, root, view, identity = map(one_line, (self.pipeline, self.root, self.view, self.identity))
        if self.kind == "root":
            return f"the root of pipeline {pipeline}" if pipeline else "a root of Slackwater"
        return f"the published table of view {view} of {root}{f' (identity {identity})' if identity else ''}"

    def to_json(self) -> bytes:
        about = "Slackwater owns this directory: its programs write and delete files here"
        return json.dumps({"about": about, **asdict(self)}, indent=1, ensure_ascii=False).encode()

    @classmethod
    def of_json(cls, content: bytes) -> Marker | None:
        """None if the content is not a marker."""
        try:
            document: dict[str, Any] = json_of(content)
            kind = document["kind"]
            if kind not in ("root", "table"):
                return None
            pipeline, root, view, version = (str(document[name]) for name in ("pipeline", "root", "view", "version"))
            return cls(kind, pipeline, root, view, version, str(document.get("identity", "")))
        except (ValueError, TypeError, KeyError):
            return None


def write_marker(location: Location, marker: Marker) -> None:
    """Writes the marker of a directory, unless the directory has an object of this name.

    A marker of the same root and view from an earlier version gets the identity of the root.

    Raises:
        StorageError: the directory cannot be written.
    """
    client = object_client(location)
    try:
        try:
            create(client, location, MARKER, marker.to_json())
        except AlreadyExistsError:
            _add_identity(client, location, marker)
    except PreconditionError:
        pass  # another process was first
    except (BaseError, OSError) as error:
        raise storage_error(error, location) from None


def _add_identity(client: ObjectStore, location: Location, marker: Marker) -> None:
    found = read_marker(location)
    if found is None or found.identity or replace(marker, version=found.version, identity="") != found:
        return
    replace_version(client, location, MARKER, marker.to_json(), read_object(client, location, MARKER).version)


def read_marker(location: Location) -> Marker | None:
    """The marker of a directory; None if it does not exist, or may not be read.

    An object that is too large does not count as a marker.  Nor does a link, a pipe or a device in a local directory,
    which could be endless.

    Raises:
        StorageError: the store does not answer.
    """
    try:
        content = _local(location) if location.is_local else _remote(location)
    except (NotFoundError, FileNotFoundError, NotADirectoryError, PermissionDeniedError, PermissionError):
        return None
    except (BaseError, OSError) as error:
        raise storage_error(error, location) from None
    return None if content is None else Marker.of_json(content)


def _local(location: Location) -> bytes | None:
    try:
        file = os.open(location.path / MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        return opened.read(_MOST_BYTES) if S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES else None


def _remote(location: Location) -> bytes | None:
    found = obstore.get(object_client(location), MARKER)  # noqa: TID251 - never on a disk
    return bytes(found.bytes()) if found.meta["size"] <= _MOST_BYTES else None
