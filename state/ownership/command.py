"""A command: one request to the run that owns a root, as data of a known kind, never as code.

In JSON: `{"kind": "throttle", "files_per_second": 5.0}`.  Arguments that have their default are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import Parameter, signature
from types import NoneType
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from state.errors import UsageError

_ARGUMENT = "argument"
Epoch = Annotated[int, "epoch"]
"""An epoch as an argument: text in JSON, since it does not fit the numbers of every reader."""

_EPOCH = re.compile(r"[0-9]{1,18}")
_MAX_QUOTED = 80


@dataclass(frozen=True)
class CommandLine:
    """The command of the command line that sends a command, and prints the answer.

    Args:
        group: title of its group in the help.
        help: its help text; the first sentence is in the list of commands.
        takeover: whether it has the option `--takeover`, which takes the root from a living process.
    """

    group: str
    help: str
    takeover: bool = False


@dataclass(frozen=True)
class ArgumentLine:
    """An argument of a command on the command line.

    Args:
        option: its name, for example `--source`; empty for a positional argument.
        metavar: its placeholder in the usage; empty for the usual one.
        names_files: whether it names files: one of the present directory is sent as a whole URL.
    """

    help: str
    option: str = ""
    metavar: str = ""
    names_files: bool = False


def argument(line: ArgumentLine, *, default: Any = MISSING) -> Any:
    """A field of a command, with its argument on the command line; required without a default."""
    return field(default=default, metadata={_ARGUMENT: line})


def argument_lines(command: type[Command]) -> Mapping[str, tuple[ArgumentLine, Any, Any]]:
    """Argument of `Command.of_line` → its description, its type, and its default; `MISSING` if it is required."""
    found: dict[str, tuple[ArgumentLine, Any, Any]] = {}
    hints = get_type_hints(command)
    for name, parameter in signature(command.of_line).parameters.items():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is Parameter.VAR_KEYWORD:
            found |= {each.name: (each.metadata[_ARGUMENT], hints[each.name], each.default) for each in fields(command)}
        else:
            kind, line = get_args(get_type_hints(command.of_line, include_extras=True)[name])
            found[name] = line, kind, MISSING if parameter.default is Parameter.empty else parameter.default
    return found


@dataclass(frozen=True)
class Command:
    """Base class of the commands.

    A command is a frozen dataclass with a `kind`.  Its fields are the arguments, of type `str`, `float`, `int` or
    `Epoch`, or one of these or None.  Importing its module makes it known to `command_from_json`:

        @dataclass(frozen=True, kw_only=True)
        class Wait(Command, kind="wait"):
            seconds: float
    """

    kind: ClassVar[str] = ""
    """The name in the store and on the command line; empty for a class that only has subclasses."""
    kinds: ClassVar[dict[str, type[Command]]] = {}
    """The known commands by kind."""
    line: ClassVar[CommandLine | None] = None
    """The CLI command that follows from this class; None for no CLI command, or one with a function of its own."""

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        cls.kind = kind
        if kind:
            if kind in cls.kinds:
                raise TypeError(f"the commands {cls.kinds[kind].__name__} and {cls.__name__} have the kind {kind!r}")
            cls.kinds[kind] = cls

    @classmethod
    def of_line(cls, *_: Any, **arguments: Any) -> Command:
        """The command of a command line, whose arguments are the fields of this class.

        A class with other arguments names them here, each as `Annotated[type, ArgumentLine(...)]`; `**arguments` means
        the fields.

        Raises:
            UsageError: the arguments are not valid.
        """
        return cls(**arguments)

    @property
    def why_run(self) -> str:
        """The reason why the command needs a run, for the error when nothing runs."""
        return f"there is nothing to {self.kind}"

    def to_json(self) -> dict[str, Any]:
        """The command as values of JSON."""
        values: dict[str, Any] = {"kind": self.kind}
        for name, (each, types) in self._arguments().items():
            value = getattr(self, name)
            if value != each.default:
                values[name] = str(value) if Epoch in types and value is not None else value
        return values

    @classmethod
    def _arguments(cls) -> Mapping[str, tuple[Field[Any], tuple[Any, ...]]]:
        """The fields by name, each with the types that its values may have."""
        hints = get_type_hints(cls, include_extras=True)
        readable = {name: (hint,) if hint in _READERS else get_args(hint) for name, hint in hints.items()}
        return {each.name: (each, readable[each.name]) for each in fields(cls)}

    @classmethod
    def _from_json(cls, values: Mapping[str, Any]) -> Command:
        arguments = cls._arguments()
        read: dict[str, Any] = {}
        for name, value in values.items():
            if name not in arguments:
                known = f"its arguments are {', '.join(arguments)}" if arguments else "it has no arguments"
                raise UsageError(f"{cls.kind}: {_quoted(name)} is not an argument; {known}")
            _, types = arguments[name]
            if value is None and NoneType in types:
                read[name] = None
                continue
            try:
                read[name] = next(_READERS[each] for each in types if each in _READERS)(value)
            except ValueError as error:
                raise UsageError(f"{cls.kind}: {name} is {_quoted(value)}; give {error}") from None
        missing = [name for name, (each, _) in arguments.items() if each.default is MISSING and name not in read]
        if missing:
            raise UsageError(f"{cls.kind}: {', '.join(missing)} is missing")
        return cls(**read)


@dataclass(frozen=True)
class Answer:
    """The outcome of a command.

    Args:
        done: False if it was refused or failed.
        text: one line for people.
        values: its numbers, for programs.
    """

    done: bool
    text: str
    values: Mapping[str, int] = field(default_factory=dict)


def command_from_json(values: Any) -> Command:
    """Reads a command from values of JSON.

    Raises:
        UsageError: the kind is not known, or an argument is not valid; the message names it.
    """
    kind = values.get("kind") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in Command.kinds:
        raise UsageError(f"{_quoted(kind)} is not a known command; the commands are {', '.join(sorted(Command.kinds))}")
    return Command.kinds[kind]._from_json({name: value for name, value in values.items() if name != "kind"})


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    return float(value)


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def _epoch(value: Any) -> int:
    if not (isinstance(value, str) and _EPOCH.fullmatch(value)):
        raise ValueError("an epoch as text")
    return int(value)


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    str: _text,
    float: _number,
    int: _whole_number,
    Epoch: _epoch,
}


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
