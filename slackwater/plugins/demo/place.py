"""Place of the demo's files and views: buckets of an embedded S3 server, or a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from slackwater.testing.servers.s3_server import S3Server
from state.removal.local_files import delete_at, new_file, replace_at
from state.removal.names import ReservedForm

_RAW, _LAKE = "raw-flights", "lake"


class Place(Protocol):
    """A store for the raw files and for the root.

    Args:
        name: the place in words.
        raw: the URL or directory of the raw files.
        root: the URL or directory of the root.
        published: the URL or directory of the published tables.
    """

    name: str
    raw: str
    root: str
    published: str

    @property
    def storage_options(self) -> Mapping[str, str]: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables that give a child process access to both."""
        ...

    def put(self, key: str, body: bytes) -> None:
        """Writes one file below `raw`, atomically."""
        ...

    def put_back(self, key: str) -> None:
        """Restores the earlier version of a replaced file: the same one for a listing, too."""
        ...


class S3Place:
    """Two buckets of an S3 server."""

    def __init__(self, server: S3Server) -> None:
        self.name = "an embedded S3 server (SeaweedFS)"
        self.raw, self.root, self.published = f"s3://{_RAW}", f"s3://{_LAKE}/flights", f"s3://{_LAKE}/published"
        self._server, self._client = server, server.client()
        self._bodies: dict[str, list[bytes]] = {}

    @property
    def storage_options(self) -> Mapping[str, str]:
        return self._server.storage_options

    @property
    def environment(self) -> Mapping[str, str]:
        # The usual variables of S3: a command line or application code must not contain a secret.
        return self._server.environment

    def put(self, key: str, body: bytes) -> None:
        self._client.put_object(Bucket=_RAW, Key=key, Body=body)
        self._bodies.setdefault(key, []).append(body)

    def put_back(self, key: str) -> None:
        self.put(key, self._bodies[key][-2])


class DirectoryPlace:
    """Two directories, `raw` and `lake`.

    Args:
        directory: their parent.
    """

    def __init__(self, directory: Path) -> None:
        self.name = f"the directory {directory}"
        self._raw = directory / "raw"
        self._raw.mkdir(parents=True)  # a new directory: nothing of others is in it
        self._written: set[str] = set()
        lake = directory / "lake"
        self.raw, self.root, self.published = str(self._raw), str(lake / "flights"), str(lake / "published")

    @property
    def storage_options(self) -> Mapping[str, str]:
        return {}

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    def put(self, key: str, body: bytes) -> None:
        final = self._raw / key
        final.parent.mkdir(exist_ok=True)
        hidden, before = f".{final.name}", f".{final.name}.before"
        with self._opened(final) as (directory, form):
            with new_file(final.with_name(hidden)) as file:
                file.write(body)
            if key in self._written:
                # The version of a local file is its inode, its time and its size.
                delete_at(directory, before, form)
                os.link(final.name, before, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
                replace_at(directory, hidden, final.name, form)
            else:
                # A link never replaces a file, as a rename does.
                os.link(hidden, final.name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
                delete_at(directory, hidden, form)
                self._written.add(key)

    def put_back(self, key: str) -> None:
        name = (self._raw / key).name
        with self._opened(self._raw / key) as (directory, form):
            replace_at(directory, f".{name}.before", name, form)

    @contextmanager
    def _opened(self, file: Path) -> Iterator[tuple[int, ReservedForm]]:
        """The directory of a file, and the names that this process gives to its versions."""
        form = ReservedForm("the files of the demo", re.compile(rf"\.?{re.escape(file.name)}(\.before)?"))
        directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield directory, form
        finally:
            os.close(directory)


@contextmanager
def open_place(directory: Path | None) -> Iterator[Place]:
    """The directory, or for None an embedded S3 server that ends with the block."""
    if directory is not None:
        yield DirectoryPlace(directory)
        return
    with S3Server() as server:
        server.create_bucket(_RAW)
        server.create_bucket(_LAKE)
        yield S3Place(server)
