"""Retention: the settings and the rule for the expiry of epochs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from state.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Thinning:
    """Keeps one epoch, the last, of every `one_per_s` seconds, up to the age of `for_s` seconds.

    Args:
        one_per_s: length of a stretch of time, in seconds, of which one epoch is kept.
        for_s: greatest age of an epoch that this rule keeps, in seconds.
    """

    one_per_s: float
    for_s: float

    def __post_init__(self) -> None:
        _require_seconds(self, "one_per_s")
        _require_seconds(self, "for_s")
        if self.one_per_s <= 0:
            raise SettingsError(f"Thinning(one_per_s={self.one_per_s!r}): give more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class RetentionSettings:
    """The epochs that stay readable.  A tagged or pinned epoch always does.

    Args:
        keep_s: keeps every epoch that was committed in the last `keep_s` seconds.
        keep_epochs: keeps the last `keep_epochs` epochs, of any age.
        thin: rules that keep some of the older epochs.

    Examples:
        One a minute for a day, one an hour for thirty days:

        >>> RetentionSettings(thin=(
        ...     Thinning(one_per_s=60, for_s=86_400), Thinning(one_per_s=3_600, for_s=30 * 86_400)
        ... )).keep_epochs
        100
    """

    keep_s: float = 3_600.0
    keep_epochs: int = 100
    thin: tuple[Thinning, ...] = ()

    def __post_init__(self) -> None:
        _require_seconds(self, "keep_s")
        if not isinstance(self.keep_epochs, int) or isinstance(self.keep_epochs, bool) or self.keep_epochs < 1:
            raise SettingsError(
                f"RetentionSettings(keep_epochs={self.keep_epochs!r}): give a whole number of at least 1; a run "
                "continues from the last epoch"
            )
        if not isinstance(self.thin, tuple) or not all(isinstance(rule, Thinning) for rule in self.thin):
            raise SettingsError(
                f"RetentionSettings(thin={self.thin!r}): give a tuple of Thinning(one_per_s=..., for_s=...)"
            )


def expired(
    epochs: Iterable[tuple[int, datetime]], *, now: datetime, retention: RetentionSettings, pinned: Collection[int] = ()
) -> list[int]:
    """The expired epochs, oldest first.

    An epoch that one call keeps for a rule is kept by later calls for the same rule until it is too old: the last epoch
    of a period stays the last when others expire.

    Args:
        epochs: every retained epoch and the time of its commit.
        now: the present time.
        retention: the epochs to keep.
        pinned: epochs that stay, because of a tag or a pin.
    """
    ordered = sorted(epochs)
    kept = set(pinned)
    kept.update(epoch for epoch, _ in ordered[-retention.keep_epochs :])
    kept.update(epoch for epoch, committed_at in ordered if _age_s(now, committed_at) <= retention.keep_s)
    for rule in retention.thin:
        last = {
            int(committed_at.timestamp() // rule.one_per_s): (epoch, committed_at) for epoch, committed_at in ordered
        }
        kept.update(epoch for epoch, committed_at in last.values() if _age_s(now, committed_at) <= rule.for_s)
    return [epoch for epoch, _ in ordered if epoch not in kept]


def _age_s(now: datetime, committed_at: datetime) -> float:
    return (now - committed_at).total_seconds()


def _require_seconds(settings: object, name: str) -> None:
    value = getattr(settings, name)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise SettingsError(f"{type(settings).__name__}({name}={value!r}): give a number of seconds, 0 or more")
