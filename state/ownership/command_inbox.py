"""`<root>/commands/`: what other processes ask of the owner, and its answers.

    <id>.json          written once, by whoever asks       {"run": "...", "command": {"kind": "pause"}}
    <id>.answer.json   written once, by the owner          {"done": true, "text": "paused", "values": {}}

An id begins with the asker's time in milliseconds: names sort as they were asked.  A command names the run that it is
for: what was asked of a run that is over is never done by the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from state.clock import Clock
from state.errors import ProtocolError, UsageError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.ownership.command import Command, command_from_json, command_to_json

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_DIRECTORY = "commands"
_NAME = re.compile(rf"{_DIRECTORY}/([0-9]{{13}}-[0-9a-f]{{16}})(\.answer)?\.json")
_MOST_BYTES = 16 * 1024
_KEPT = timedelta(hours=1)


@dataclass(frozen=True)
class Asked:
    """A command without an answer.

    Args:
        id: its name.
        run: whom it is for; empty if that cannot be read.
        command: what is asked; None if that cannot be read.
        error: why it cannot be read.
    """

    id: str
    run: str = ""
    command: Command | None = None
    error: str = ""


@dataclass(frozen=True)
class Answer:
    """What became of a command: whether it is done, one line about it, and its numbers."""

    done: bool
    text: str
    values: Mapping[str, int] = field(default_factory=dict)


class CommandInbox:
    """The commands of one root, for both sides.

    Args:
        root: the root.
        clock: names commands, and tells how old answers are.
    """

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._client = object_client(root)

    def ask(self, command: Command, run: str, random: Random) -> str:
        """Writes a command.

        Args:
            command: what is asked.
            run: the run that owns the root.
            random: tells commands of one millisecond apart.

        Returns:
            Its id.

        Raises:
            UsageError: it is too large.
            StorageError: the root cannot be written.
        """
        body = json.dumps({"run": run, "command": command_to_json(command)}).encode()
        if len(body) > _MOST_BYTES:
            raise UsageError(f"a command of {len(body):,} bytes is too large, {_MOST_BYTES:,} are the most: shorten it")
        while True:
            milliseconds = int(self._clock.now().timestamp() * 1000)
            name = f"{milliseconds:013d}-{random.getrandbits(64):016x}"
            # It may be there because a first try arrived and its answer did not.
            if self._create(_path(name), body) or self._read(_path(name)) == body:
                return name

    def withdraw(self, name: str) -> None:
        """Takes a command back that nobody has answered; one that is being done is not stopped by it."""
        self._delete([_path(name)])

    def answer_to(self, name: str) -> Answer | None:
        """The answer to a command, None while there is none.

        Raises:
            StorageError: the root cannot be read.
            ProtocolError: the answer cannot be understood.
        """
        body = self._read(_answer_path(name))
        if body is None:
            return None
        try:
            values = json.loads(body)
            numbers = {str(name): int(number) for name, number in values["values"].items()}
            return Answer(values["done"] is True, str(values["text"]), numbers)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ProtocolError(f"{self._root}/{_answer_path(name)} is no answer that this version knows") from None

    def pending(self) -> list[Asked]:
        """The commands without an answer, oldest first, for one LIST.  Answers that are an hour old are cleared away.

        Raises:
            StorageError: the root cannot be read or written.
        """
        try:
            listed = [each for batch in obstore.list(self._client, _DIRECTORY) for each in batch]
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None
        asked: dict[str, int] = {}
        answered: dict[str, Any] = {}
        for each in listed:
            if (name := _NAME.fullmatch(each["path"])) is None:
                continue
            if name[2]:
                answered[name[1]] = each["last_modified"]
            else:
                asked[name[1]] = each["size"]
        old = [name for name, at in answered.items() if at < self._clock.now() - _KEPT]
        self._delete([path for name in old for path in (_path(name), _answer_path(name))])
        unanswered = (self._asked(name, asked[name]) for name in sorted(asked.keys() - answered))
        return [command for command in unanswered if command is not None]

    def answer(self, name: str, answer: Answer) -> None:
        """Writes the answer to a command; a second one changes nothing.

        Raises:
            StorageError: the root cannot be written.
        """
        self._create(_answer_path(name), json.dumps(asdict(answer)).encode())

    def _asked(self, name: str, size: int) -> Asked | None:
        """What a file asks; None if it was withdrawn meanwhile."""
        if size > _MOST_BYTES:
            return Asked(name, error=f"a command of {size:,} bytes is not read, {_MOST_BYTES:,} are the most")
        body = self._read(_path(name))
        if body is None:
            return None
        try:
            values = json.loads(body)
            run, command = values["run"], values["command"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return Asked(name, error='a command is JSON like {"run": "...", "command": {"kind": "pause"}}')
        try:
            return Asked(name, str(run), command_from_json(command))
        except UsageError as error:
            return Asked(name, str(run), error=str(error))

    def _create(self, path: str, body: bytes) -> bool:
        """Whether the object is new."""
        try:
            obstore.put(self._client, path, body, mode="create")
            return True
        except AlreadyExistsError:
            return False
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None

    def _read(self, path: str) -> bytes | None:
        try:
            return bytes(obstore.get(self._client, path).bytes())
        except (FileNotFoundError, NotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            try:
                obstore.delete(self._client, path)
            except (FileNotFoundError, NotFoundError):
                continue  # somebody else was first
            except (BaseError, OSError) as error:
                raise storage_error(error, self._root) from None


def _path(name: str) -> str:
    return f"{_DIRECTORY}/{name}.json"


def _answer_path(name: str) -> str:
    return f"{_DIRECTORY}/{name}.answer.json"
