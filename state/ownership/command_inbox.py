"""The inbox of a root: commands of other processes to its owner, and the answers, as files in `<root>/commands/`.

    <id>.json          written once, by the process that asks   {"run": "...", "command": {"kind": "pause"}}
    <id>.answer.json   written once, by the owner               {"done": true, "text": "paused", "values": {}}

An id begins with the time of the asking process in milliseconds: names sort by it.  A command names its run: the next
run never carries out the commands of an earlier run.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from state.clock import Clock
from state.errors import ProtocolError, UsageError
from state.json_document import json_of
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.ownership.command import Answer, Command, command_from_json
from state.removal.evidence import ReservedNames
from state.removal.names import COMMANDS
from state.removal.objects import create, delete

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_DIRECTORY = "commands"
_NAME = re.compile(rf"{_DIRECTORY}/([0-9]{{13}}-[0-9a-f]{{16}})(\.answer)?\.json")
_MAX_BYTES = 16 * 1024
_RETENTION = timedelta(hours=1)


@dataclass(frozen=True)
class PendingCommand:
    """A command without an answer.

    Args:
        run: the run that it is for; empty if the file cannot be read.
        command: the command; None if the file cannot be read.
        error: the reason why the file cannot be read.
    """

    id: str
    run: str = ""
    command: Command | None = None
    error: str = ""


class CommandInbox:
    """The commands and answers of one root, for the process that asks and for the owner.

    Args:
        clock: gives the time in the ids, and the age of answers.
    """

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._client = object_client(root)

    def ask(self, command: Command, run: str, random: Random) -> str:
        """Writes a command.

        Args:
            run: the run that owns the root.
            random: distinguishes commands of one millisecond.

        Returns:
            The id of the command.

        Raises:
            UsageError: the command is too large.
            StorageError: the root cannot be written.
        """
        body = json.dumps({"run": run, "command": command.to_json()}).encode()
        if len(body) > _MAX_BYTES:
            raise UsageError(f"a command of {len(body):,} bytes is too large: shorten it to {_MAX_BYTES:,} bytes")
        while True:
            milliseconds = int(self._clock.now().timestamp() * 1000)
            name = f"{milliseconds:013d}-{random.getrandbits(64):016x}"
            # The file may exist because a first request arrived and its response was lost.
            if self._create(_path(name), body) or self._read(_path(name)) == body:
                return name

    def withdraw(self, name: str) -> None:
        """Deletes a command without an answer.  The owner may be carrying it out already, and then completes it."""
        self._delete([_path(name)])

    def answer_to(self, name: str) -> Answer | None:
        """The answer to a command; None before the owner has written it.

        Raises:
            StorageError: the root cannot be read.
            ProtocolError: the answer is not valid: its text is not JSON, or a number is not finite.
        """
        body = self._read(_answer_path(name))
        if body is None:
            return None
        try:
            values = json_of(body)
            numbers = {str(name): int(number) for name, number in values["values"].items()}
            return Answer(values["done"] is True, str(values["text"]), numbers)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ProtocolError(f"{self._root}/{_answer_path(name)} is not a valid answer") from None

    def pending(self) -> list[PendingCommand]:
        """The commands without an answer, oldest first.  Costs one LIST; deletes answers that are an hour old.

        Raises:
            StorageError: the root cannot be read or written.
        """
        try:
            listed = [each for batch in obstore.list(self._client, _DIRECTORY) for each in batch]
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None
        sizes: dict[str, int] = {}
        answered_at: dict[str, Any] = {}
        for each in listed:
            if (name := _NAME.fullmatch(each["path"])) is None:
                continue
            if name[2]:
                answered_at[name[1]] = each["last_modified"]
            else:
                sizes[name[1]] = each["size"]
        old = [name for name, at in answered_at.items() if at < self._clock.now() - _RETENTION]
        self._delete([path for name in old for path in (_path(name), _answer_path(name))])
        unanswered = (self._pending(name, sizes[name]) for name in sorted(sizes.keys() - answered_at))
        return [command for command in unanswered if command is not None]

    def answer(self, name: str, answer: Answer) -> None:
        """Writes the answer to a command; a second one changes nothing.

        Raises:
            StorageError: the root cannot be written.
        """
        self._create(_answer_path(name), json.dumps(asdict(answer)).encode())

    def _pending(self, name: str, size: int) -> PendingCommand | None:
        """Reads a command; None if it was withdrawn meanwhile."""
        if size > _MAX_BYTES:
            return PendingCommand(name, error=f"the command has {size:,} bytes; at most {_MAX_BYTES:,} are read")
        body = self._read(_path(name))
        if body is None:
            return None
        try:
            values = json_of(body)
            run, command = values["run"], values["command"]
        except (ValueError, TypeError, KeyError):
            return PendingCommand(name, error='a command is JSON like {"run": "...", "command": {"kind": "pause"}}')
        try:
            return PendingCommand(name, str(run), command_from_json(command))
        except UsageError as error:
            return PendingCommand(name, str(run), error=str(error))

    def _create(self, path: str, body: bytes) -> bool:
        """Writes an object; returns False if it exists."""
        try:
            create(self._client, self._root, path, body)
            return True
        except AlreadyExistsError:
            return False
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None

    def _read(self, path: str) -> bytes | None:
        try:
            return read_object(self._client, self._root, path).content
        except (FileNotFoundError, NotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            try:
                delete(ReservedNames(self._root, COMMANDS), [path], self._client)
            except (FileNotFoundError, NotFoundError):
                continue  # another process was first
            except (BaseError, OSError) as error:
                raise storage_error(error, self._root) from None


def _path(name: str) -> str:
    return f"{_DIRECTORY}/{name}.json"


def _answer_path(name: str) -> str:
    return f"{_DIRECTORY}/{name}.answer.json"
