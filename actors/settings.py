"""How often an epoch is made, and how files are fetched.  Plain values; a wrong one is refused where it is written."""

from __future__ import annotations

from dataclasses import dataclass

from state.errors import SettingsError

MIB = 1024 * 1024


def require_positive(settings: object, *options: str) -> None:
    """Refuses options that are not numbers above zero.

    Raises:
        SettingsError: naming the option, its value and what it must be.
    """
    for option in options:
        value = getattr(settings, option)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise SettingsError(f"{type(settings).__name__}({option}={value!r}): give a number above zero")


@dataclass(frozen=True, kw_only=True)
class BarrierSettings:
    """When a barrier is injected.  It never is while there is nothing to commit.

    Args:
        interval_s: an epoch ends at the latest after so many seconds.
        idle_interval_s: and after so many when everything that was listed has been read.
        max_in_flight: epochs between their barrier and their commit; fetching runs ahead by as many.
        max_epoch_bytes: an epoch ends early when so many bytes of its rows wait for Spark.
    """

    interval_s: float = 1.0
    idle_interval_s: float = 0.1
    max_in_flight: int = 4
    max_epoch_bytes: int = 128 * MIB

    def __post_init__(self) -> None:
        require_positive(self, "interval_s", "idle_interval_s", "max_in_flight", "max_epoch_bytes")
        if self.idle_interval_s > self.interval_s:
            raise SettingsError(
                f"BarrierSettings(idle_interval_s={self.idle_interval_s}): "
                f"it may not be above interval_s={self.interval_s}"
            )


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """How files are read.

    Args:
        num_fetchers: fetch actors; each owns an equal share of the vnodes.
        concurrency: requests in flight, per fetch actor.
        max_bytes_in_flight: bytes that were read and that Spark has not released yet, per fetch actor.
        whole_object_bytes: an object up to this size is one GET.
        piece_bytes: larger ones are read in pieces of about this size; batches have about this size, too.
        max_files_waiting: the list actors send no more while so many files wait.
        max_attempts: tries of a request before the store counts as unavailable.
    """

    num_fetchers: int = 2
    concurrency: int = 32
    max_bytes_in_flight: int = 256 * MIB
    whole_object_bytes: int = 8 * MIB
    piece_bytes: int = 8 * MIB
    max_files_waiting: int = 20_000
    max_attempts: int = 5

    def __post_init__(self) -> None:
        require_positive(
            self,
            "num_fetchers",
            "concurrency",
            "max_bytes_in_flight",
            "whole_object_bytes",
            "piece_bytes",
            "max_files_waiting",
            "max_attempts",
        )
