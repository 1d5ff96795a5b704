"""Check of Ray's token: all users who can read its file can run code as this user."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from slackwater.plugins.doctor.finding import Finding

_TOKEN = "RAY_AUTH_TOKEN"
_PATH = "RAY_AUTH_TOKEN_PATH"
_GROUP, _OTHERS = 0o070, 0o007


class RayTokenCheck:
    """Looks at the mode and the owner of the token file, never at its content.

    Args:
        environment: the variables that name the file or hold the token.
        home: the directory with `.ray/auth_token`.
    """

    name = "ray's token"

    def __init__(self, environment: Mapping[str, str] = os.environ, home: Path | None = None) -> None:
        self._environment, self._home = environment, home

    def findings(self) -> Iterator[Finding]:
        if self._environment.get(_TOKEN):
            yield Finding.ok(self.name, f"it is in the environment variable {_TOKEN}")
            return
        file = Path(self._environment.get(_PATH) or (self._home or Path.home()) / ".ray" / "auth_token")
        try:
            status = file.stat()
        except FileNotFoundError:
            yield Finding.ok(self.name, f"there is no {file}; Ray makes it at its first start")
            return
        except OSError as error:
            yield Finding.warning(self.name, f"{file}: {error.strerror}", "give this user access to the file")
            return
        if status.st_uid not in (0, os.geteuid()):
            found = f"{file} belongs to user {status.st_uid}, who can run code as you in Ray"
            yield Finding.warning(self.name, found, f"delete {file}; Ray makes a new token")
        elif readers := _readers(file):
            found = f"{readers} can read or replace {file}, and run code as you in Ray"
            yield Finding.warning(self.name, found, f"chmod 600 {file}")
        else:
            yield Finding.ok(self.name, f"only this user has access to {file}")


def _readers(file: Path) -> str:
    """The other users who can read or replace the file; empty without any."""
    path = file.resolve()
    mode = stat.S_IMODE(path.stat().st_mode)
    directories = [stat.S_IMODE(directory.stat().st_mode) for directory in path.parents]
    for users, bits in (("all users of this machine", _OTHERS), ("users of its group", _GROUP)):
        search = bits & 0o011
        if mode & bits & ~search and all(directory & search for directory in directories):
            return users
    return ""
