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
class RecoverySettings:
    """What follows a failure inside a run.

    Args:
        first_pause_s: seconds before the next attempt; each further failure doubles them.
        max_pause_s: and no more than these.
        max_tries: attempts in a row that finish no file, before the run ends with the last error.
        suspicious_within_s: five failures within so many seconds make the next attempts careful, with few files at a
            time, whatever was finished in between.
    """

    first_pause_s: float = 0.5
    max_pause_s: float = 30.0
    max_tries: int = 10
    suspicious_within_s: float = 600.0

    def __post_init__(self) -> None:
        require_positive(self, "first_pause_s", "max_pause_s", "max_tries", "suspicious_within_s")


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """What one file may ask of a reader.  A file that asks for more is quarantined, with the limit named.

    Args:
        max_columns: columns of the file, counting the fields of structs instead of the struct.
        max_nesting: levels of lists, structs and JSON objects within each other.
        max_record_bytes: one line of text, decompressed; about, as text is read in blocks.
        max_batch_bytes: memory for the rows that are decoded at once: a row, or a page of a Parquet file, that takes
            more cannot be read.
        max_expansion: bytes of text or rows for each byte of a compressed or Parquet file; a file of which less than
            256 MiB have been read is never refused.
    """

    max_columns: int = 10_000
    max_nesting: int = 64
    max_record_bytes: int = 64 * MIB
    max_batch_bytes: int = 256 * MIB
    max_expansion: float = 1_000.0

    def __post_init__(self) -> None:
        require_positive(self, "max_columns", "max_nesting", "max_record_bytes", "max_batch_bytes", "max_expansion")


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
        limits: what one file may ask for.
    """

    num_fetchers: int = 2
    concurrency: int = 32
    max_bytes_in_flight: int = 256 * MIB
    whole_object_bytes: int = 8 * MIB
    piece_bytes: int = 8 * MIB
    max_files_waiting: int = 20_000
    max_attempts: int = 5
    limits: ReadLimits = ReadLimits()

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
