"""What one process asks of another that owns a root: data of a closed set of kinds, never code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from state.errors import UsageError
from state.location import Location
from state.upkeep.tags import check_tag_name
from state.vnode import fetcher_bounds

_EPOCH = re.compile(r"[0-9]{1,18}")
_MOST_SHOWN = 80


@dataclass(frozen=True)
class PauseCommand:
    """Nothing is listed or read from the next barrier on."""


@dataclass(frozen=True)
class ResumeCommand:
    """Takes a pause back."""


@dataclass(frozen=True)
class StopCommand:
    """The run ends after a last epoch."""


@dataclass(frozen=True, kw_only=True)
class ThrottleCommand:
    """The run reads no more than this each second; without any limit as its settings say."""

    files_per_second: float | None = None
    bytes_per_second: float | None = None
    rows_per_second: float | None = None

    def __post_init__(self) -> None:
        for name in ("files_per_second", "bytes_per_second", "rows_per_second"):
            rate = getattr(self, name)
            if rate is not None and not (math.isfinite(rate) and rate > 0):
                raise UsageError(f"throttle: {name}={rate}: give a number above zero")


@dataclass(frozen=True, kw_only=True)
class RescaleCommand:
    """There are to be other numbers of fetch actors.

    Args:
        fewest, most: the same, or the run chooses between them by how much there is to do.
    """

    fewest: int
    most: int

    def __post_init__(self) -> None:
        fetcher_bounds((self.fewest, self.most))


@dataclass(frozen=True, kw_only=True)
class ReingestCommand:
    """Files are read once more, in place of what was read of them.

    Args:
        file: which: a whole URL, an absolute path, or a glob over the paths below a source.
        source: only of this source.
    """

    file: str
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", _without_secrets(self.file))


@dataclass(frozen=True, kw_only=True)
class ForgetCommand:
    """Files are taken out of everything.

    Args:
        file: which: a whole URL, an absolute path, or a glob over the paths below a source.
        source: only of this source.
    """

    file: str
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", _without_secrets(self.file))


def _without_secrets(file: str) -> str:
    """What is asked is stored: not with the secrets that a URL may have."""
    return Location(file).url if "://" in file else file


@dataclass(frozen=True, kw_only=True)
class RetryCommand:
    """Quarantined files are read again: all, those of a source, or some.

    Args:
        source: only of this source.
        file: only those that this names: a whole URL, an absolute path, or a glob over the paths below a source.
    """

    source: str | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if self.file is not None:
            object.__setattr__(self, "file", _without_secrets(self.file))


@dataclass(frozen=True, kw_only=True)
class ClearQuarantineCommand:
    """What bad records were is forgotten.

    Args:
        epoch: of those only that were quarantined up to this one.
        source: only of this source.
    """

    epoch: int
    source: str | None = None


@dataclass(frozen=True, kw_only=True)
class TagCommand:
    """An epoch gets a name, or a name goes.

    Args:
        name: the tag.
        epoch: which epoch; None to take the name away.
    """

    name: str
    epoch: int | None

    def __post_init__(self) -> None:
        check_tag_name(self.name)


@dataclass(frozen=True, kw_only=True)
class VacuumCommand:
    """Older epochs go, and the files that only they use.

    Args:
        keep_s: every epoch of the last so many seconds stays.
        keep_epochs: and the last so many, whatever their age.

    A pipeline that runs keeps what its settings say; these are for a root that nobody runs on.
    """

    keep_s: float | None = None
    keep_epochs: int | None = None

    def __post_init__(self) -> None:
        if self.keep_s is not None and not self.keep_s >= 0:
            raise UsageError(f"vacuum: keep_s={self.keep_s}: give seconds, not below zero")
        if self.keep_epochs is not None and self.keep_epochs < 1:
            raise UsageError(f"vacuum: keep_epochs={self.keep_epochs}: at least the last epoch stays")


Command = (
    PauseCommand
    | ResumeCommand
    | StopCommand
    | ThrottleCommand
    | RescaleCommand
    | RetryCommand
    | ReingestCommand
    | ForgetCommand
    | ClearQuarantineCommand
    | TagCommand
    | VacuumCommand
)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def _epoch(value: Any) -> int:
    """Text, since an epoch does not fit the numbers of every reader of JSON."""
    if not (isinstance(value, str) and _EPOCH.fullmatch(value)):
        raise ValueError("an epoch as text")
    return int(value)


def _epoch_or_none(value: Any) -> int | None:
    return None if value is None else _epoch(value)


_KINDS: Mapping[str, tuple[type[Any], Mapping[str, Callable[[Any], Any]]]] = {
    "pause": (PauseCommand, {}),
    "resume": (ResumeCommand, {}),
    "stop": (StopCommand, {}),
    "throttle": (
        ThrottleCommand,
        {"files_per_second": _number, "bytes_per_second": _number, "rows_per_second": _number},
    ),
    "rescale": (RescaleCommand, {"fewest": _whole, "most": _whole}),
    "retry": (RetryCommand, {"source": _text, "file": _text}),
    "reingest": (ReingestCommand, {"source": _text, "file": _text}),
    "forget": (ForgetCommand, {"source": _text, "file": _text}),
    "clear_quarantine": (ClearQuarantineCommand, {"source": _text, "epoch": _epoch}),
    "tag": (TagCommand, {"name": _text, "epoch": _epoch_or_none}),
    "vacuum": (VacuumCommand, {"keep_s": _number, "keep_epochs": _whole}),
}


def kind_of(command: Command) -> str:
    """The kind of a command, as the store and the command line name it."""
    return next(kind for kind, (each, _) in _KINDS.items() if isinstance(command, each))


def command_to_json(command: Command) -> dict[str, Any]:
    """A command as JSON's values; fields that have their default are left out."""
    given = {each.name: (getattr(command, each.name), each.default) for each in fields(command)}
    values = {name: value for name, (value, default) in given.items() if value != default}
    if values.get("epoch") is not None:
        values["epoch"] = str(values["epoch"])
    return {"kind": kind_of(command), **values}


def command_from_json(values: Any) -> Command:
    """The command that JSON's values say.

    Raises:
        UsageError: they say no command: the kind or the field is named.
    """
    kind = values.get("kind") if isinstance(values, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UsageError(f"{_shown(kind)} is no command that is known here; there are {', '.join(_KINDS)}")
    command_type, readers = _KINDS[kind]
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name == "kind":
            continue
        if name not in readers:
            raise UsageError(f"{kind}: there is no {_shown(name)}; it takes {', '.join(readers) or 'nothing'}")
        try:
            read[name] = readers[name](value)
        except ValueError as error:
            raise UsageError(f"{kind}: {name} is {_shown(value)}; give {error}") from None
    missing = [each.name for each in fields(command_type) if each.default is MISSING and each.name not in read]
    if missing:
        raise UsageError(f"{kind}: {', '.join(missing)} is missing")
    command: Command = command_type(**read)
    return command


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
