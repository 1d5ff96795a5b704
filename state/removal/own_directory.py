"""A temporary directory that this process made, and removes without what others put into it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from state.removal.local_files import new_file
from state.removal.local_path import parts_of, stat_at


class OwnDirectory:
    """A new private directory.

    Args:
        prefix: the beginning of its name.

    Raises:
        OSError: the directory for temporary files cannot be written.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._status = os.stat(self.path)
        self._names: list[str] = []

    def write(self, name: str, content: str) -> None:
        """Writes a new file, which `remove` deletes.

        Raises:
            FileExistsError: it exists, and was not changed.
        """
        with new_file(self.path / name) as file:
            file.write(content.encode())
        self._names.append(name)

    def remove(self, names: Iterable[str] = (), directories: Iterable[str] = ()) -> None:
        """Deletes the written files, and then the directory if it is empty.  Everything else stays.

        Args:
            names: further files that another program wrote for this process.
            directories: directories in it, which are removed if they are empty.
        """
        try:
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # it was removed, or its name is a link now
        try:
            if not os.path.samestat(os.fstat(directory), self._status):
                return
            for name in (*self._names, *names):
                if len(parts_of(name)) == 1 and stat_at(directory, name) is not None:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=directory)
            for name in directories:
                if len(parts_of(name)) == 1:
                    with suppress(OSError):  # it is not empty
                        os.rmdir(name, dir_fd=directory)
        finally:
            os.close(directory)
        with suppress(OSError):  # it is not empty
            os.rmdir(self.path)
