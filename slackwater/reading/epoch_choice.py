"""Choice of an epoch, in the words of a user: its number, a short name, a tag, or a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from state.errors import EpochExpiredError, EpochNotFoundError, NotFoundError, UsageError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.records import EpochRecord
from state.upkeep.branches import root_above, user_tags

_BACK = re.compile(r"-\d{1,9}")
_NUMBER = re.compile(r"#\d{1,18}")
_FRACTION = re.compile(r":\d{2}[.,](\d{1,6})")
_HAS_SECONDS = re.compile(r":\d{2}:\d{2}")


def find_epoch(
    state: LanceStateStore,
    root: Location,
    epoch: int | str | None = None,
    *,
    as_of: datetime | str | None = None,
    tag: str | None = None,
) -> EpochRecord:
    """The record of one epoch; no other record is read.

    Args:
        state: the handle on the store.
        root: the root, for messages.
        epoch: an epoch; below 0, the number of epochs before the latest; as text also `latest`, `#` and the number of
            the epoch as `slackwater epochs` shows it, a tag, or an ISO time.  None for the latest.
        as_of: a time, or an ISO time: the last epoch that was committed up to it.
        tag: the name of an epoch.

    Raises:
        EpochNotFoundError: the epoch does not exist; EpochExpiredError if it may have been retained before.
        NotFoundError: the tag does not exist.
        UsageError: the epoch or the time is not valid, or more than one argument is given.
    """
    if sum(argument is not None for argument in (epoch, as_of, tag)) > 1:
        raise UsageError("a snapshot is chosen by epoch, as_of or tag: give one of them")
    if not state.head.epoch:
        raise EpochNotFoundError(f"no epoch has been committed at {root} yet: run the pipeline")
    tags = state.head.tags
    if tag is not None:
        if tag not in tags:
            raise NotFoundError(f"there is no tag {tag!r}; the tags are: {', '.join(user_tags(tags)) or 'none'}")
        return _record(state, root, tags[tag], f"epoch {tags[tag]}")
    if as_of is not None:
        moment = as_of if isinstance(as_of, datetime) else _time(as_of)
        if moment is None:
            raise UsageError(f"as_of={as_of!r} is not a valid time: give one like 2026-01-31T12:00:00Z")
        return _up_to(state, root, moment)
    return _named(state, root, epoch, tags)


def _named(state: LanceStateStore, root: Location, epoch: int | str | None, tags: Mapping[str, int]) -> EpochRecord:
    if epoch is None or epoch == "latest":
        return _record(state, root, state.head.epoch, "the latest epoch")
    if isinstance(epoch, int):
        return _back(state, root, epoch) if epoch < 0 else _record(state, root, epoch, f"epoch {epoch}")
    if epoch in tags:
        return _record(state, root, tags[epoch], f"epoch {tags[epoch]}")
    if _BACK.fullmatch(epoch):
        return _back(state, root, int(epoch))
    if _NUMBER.fullmatch(epoch):
        times = state.epoch_times()
        found = times.filter(pc.equal(times["state_version"], int(epoch[1:])))["epoch"].to_pylist()
        return _record(state, root, found[0] if found else None, f"epoch {epoch}", is_past=True)
    if epoch.isdecimal() and epoch.isascii():
        return _record(state, root, int(epoch), f"epoch {epoch}")
    moment = _time(epoch)
    if moment is None:
        raise UsageError(
            f"{epoch!r} is not a valid epoch: give its number, `latest`, -1 for the one before it, a short number like "
            "#57 (`slackwater epochs` shows it), a time like 2026-01-31T12:00:00Z, or a tag; the tags are: "
            f"{', '.join(user_tags(tags)) or 'none'}"
        )
    return _up_to(state, root, moment)


def _back(state: LanceStateStore, root: Location, steps: int) -> EpochRecord:
    """The epoch at this distance before the latest: -1 is the one before it."""
    numbers = state.epoch_times()["epoch"].to_pylist()
    found = numbers[steps - 1] if -steps < len(numbers) else None
    return _record(state, root, found, f"epoch {steps}, counted from the latest,", is_past=True)


def _up_to(state: LanceStateStore, root: Location, moment: datetime) -> EpochRecord:
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    times = state.epoch_times()
    found = pc.max(times.filter(pc.less_equal(times["committed_at"], moment))["epoch"]).as_py()
    if found is None:
        raise _missing(state, root, f"no retained epoch was committed up to {moment.isoformat()}", is_past=True)
    return _record(state, root, found, f"epoch {found}")


def _record(
    state: LanceStateStore, root: Location, epoch: int | None, named: str, *, is_past: bool = False
) -> EpochRecord:
    record = None if epoch is None else state.epoch(epoch)
    if record is None:
        is_past = is_past or (epoch is not None and epoch < state.head.epoch)
        raise _missing(state, root, f"{named} was never committed or is no longer retained", is_past=is_past)
    return record


def _missing(state: LanceStateStore, root: Location, said: str, *, is_past: bool) -> EpochNotFoundError:
    above = root_above(root) if is_past and state.is_branch else None
    elsewhere = f"; it is a branch: epochs before its first one are at {above}" if above else ""
    kind = EpochExpiredError if is_past else EpochNotFoundError
    return kind(f"{said} at {root}: {_extent(state.epoch_times())}{elsewhere}")


def _extent(times: pa.Table) -> str:
    """The retained epochs in words: their number, the first and the last."""
    ends = times.take([0, len(times) - 1]).to_pylist()
    first, last = (f"{each['epoch']} ({each['committed_at'].isoformat()})" for each in ends)
    return f"there are {len(times)} epochs from {first} to {last}"


def _time(text: str) -> datetime | None:
    """A time; one without all digits is the end of its second, or of its part of a second.

    So the epoch whose commit is shown at 12:00:02 is found by this time.  None: the text is not a time.
    """
    try:
        begin = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    except ValueError:
        return None
    if not _HAS_SECONDS.search(text):
        return begin
    fraction = _FRACTION.search(text)
    digits = 0 if fraction is None else len(fraction.group(1))
    return begin + timedelta(microseconds=10 ** (6 - digits) - 1)
