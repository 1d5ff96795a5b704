"""Settings of barriers, recovery and fetching.  Plain values; a wrong one is refused where it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from state.errors import SettingsError, UsageError
from state.vnode import fetcher_bounds

MIB = 1024 * 1024


def require_positive(settings: object, *options: str) -> None:
    """Refuses options that are not numbers above zero.

    Raises:
        SettingsError: the message names the option, its value and the values allowed.
    """
    for option in options:
        value = getattr(settings, option)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise SettingsError(f"{type(settings).__name__}({option}={value!r}): give a number above zero")


def require_one_of(option: str, value: object, allowed: Sequence[str]) -> None:
    """Refuses a value that is not among the allowed ones.

    Raises:
        SettingsError: the message names the option, its value and the values allowed.
    """
    if value not in allowed:
        raise SettingsError(f"{option}={value!r}: give one of {', '.join(allowed)}")


@dataclass(frozen=True, kw_only=True)
class BarrierSettings:
    """Times and limits of epochs.  No barrier is injected while there is nothing to commit.

    Args:
        interval_s: the time that an epoch is open while files are read, in seconds.  After a rest, an epoch is open
            for at most half of the time that Spark worked on the last epochs, from its first file on.
        idle_interval_s: the same when everything that was listed has been read, and Spark is free.
        max_in_flight: epochs between their barrier and their commit; fetching runs ahead by as many.
        max_epoch_bytes: an epoch ends early when this many bytes of its rows wait for Spark.
        stalled_epoch_s: an attempt fails, and the next one begins, when an epoch in flight makes no progress for this
            long; Spark's work on an epoch is not timed.  Infinity for no limit.
    """

    interval_s: float = 1.0
    idle_interval_s: float = 0.1
    max_in_flight: int = 4
    max_epoch_bytes: int = 128 * MIB
    stalled_epoch_s: float = 300.0

    def __post_init__(self) -> None:
        require_positive(self, "interval_s", "idle_interval_s", "max_in_flight", "max_epoch_bytes", "stalled_epoch_s")
        if self.idle_interval_s > self.interval_s:
            raise SettingsError(
                f"BarrierSettings(idle_interval_s={self.idle_interval_s}): "
                f"it may not be above interval_s={self.interval_s}"
            )


@dataclass(frozen=True, kw_only=True)
class RecoverySettings:
    """Attempts after a failure inside a run.

    Args:
        first_pause_s: seconds before the next attempt; each further failure doubles them.
        max_pause_s: the longest pause in seconds.
        max_tries: attempts in a row that finish no file and commit no row, before the run ends with the last error.
        suspicious_within_s: five failures within this many seconds make the next attempts careful, with few files at a
            time, even if files were finished in between.  After a death in the work on views, one view is computed at a
            time for this many seconds.
    """

    first_pause_s: float = 0.5
    max_pause_s: float = 30.0
    max_tries: int = 10
    suspicious_within_s: float = 600.0

    def __post_init__(self) -> None:
        require_positive(self, "first_pause_s", "max_pause_s", "max_tries", "suspicious_within_s")


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Limits of one file.  A file beyond one of them is quarantined, with the limit named.

    Args:
        max_columns: columns of the file, counting the fields of structs instead of the struct.
        max_nesting: levels of lists, structs and JSON objects within each other.
        max_record_bytes: one line of text, decompressed; about this size, as text is read in blocks.
        max_batch_bytes: memory for the rows that are decoded at once: a row, or a page of a Parquet file, that takes
            more cannot be read.  From a line of JSON that takes more in Python no schema is inferred.
        max_bad_records: records of one file that may be quarantined one by one; one that has more is quarantined whole.
        max_expansion: bytes of text or rows for each byte of a compressed or Parquet file; it applies when 256
            MiB of the file have been read.
        max_cpu_s_per_mib: CPU seconds of one reading for each MiB of the file as it is stored; a smaller file counts
            as one MiB.
    """

    max_columns: int = 10_000
    max_nesting: int = 64
    max_record_bytes: int = 64 * MIB
    max_batch_bytes: int = 256 * MIB
    max_bad_records: int = 10_000
    max_expansion: float = 1_000.0
    max_cpu_s_per_mib: float = 30.0

    def __post_init__(self) -> None:
        require_positive(
            self,
            "max_columns",
            "max_nesting",
            "max_record_bytes",
            "max_batch_bytes",
            "max_bad_records",
            "max_expansion",
            "max_cpu_s_per_mib",
        )


@dataclass(frozen=True, kw_only=True)
class RequestSettings:
    """Sizes of the requests to an object store.

    Args:
        whole_object_bytes: an object up to this size is one GET.
        footer_bytes: size of the first GET of a larger Parquet file, at its end: the footer nearly always fits, with
            some 100 bytes a column of each row group.
        max_gap_bytes: the largest gap between two wanted ranges that is read with them, since a request costs its
            latency: 30 ms at 100 MB/s are 3 MB.
        max_span_bytes: a longer range is several GETs, side by side.
        max_held_bytes: the columns of a row group that needs more are read in windows, so that about this much is held.
        block_bytes: a larger text file is read in ranges of this size.
    """

    whole_object_bytes: int = 8 * MIB
    footer_bytes: int = MIB
    max_gap_bytes: int = MIB
    max_span_bytes: int = 16 * MIB
    max_held_bytes: int = 128 * MIB
    block_bytes: int = 8 * MIB

    def __post_init__(self) -> None:
        require_positive(self, "whole_object_bytes", "footer_bytes", "max_span_bytes", "max_held_bytes", "block_bytes")


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """A cache on the local disks of the fetch actors, for files that a backfill reads again.

    It holds the content of the files, unencrypted, readable to its owner alone.

    Args:
        directory: path on each machine.
        max_bytes: size of the caches of all fetch actors together.
    """

    directory: str
    max_bytes: int

    def __post_init__(self) -> None:
        require_positive(self, "max_bytes")


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """Reading of files.

    Args:
        num_fetchers: number of fetch actors, at most 256; each owns an equal share of the vnodes.  Two numbers, the
            fewest and the most, let the run choose by its workload.
        concurrency: requests in flight, per fetch actor.
        max_bytes_in_flight: bytes that were read and that Spark has not released yet, per fetch actor.
        piece_bytes: files are read in pieces of about this size; batches have about this size, too.
        max_files_waiting: the list actors send no more while this many files wait.
        max_attempts: tries of a request before the store counts as unavailable.
        max_files_per_epoch: the most files that end in one epoch; None for no limit.  The files of one command, such as
            `forget`, end together, however many they are.
        max_rows_per_second: the most rows emitted each second, on average; None for no limit.
        requests: sizes of the requests.
        cache: cache of contents; None for no cache.
        limits: limits of one file.
    """

    num_fetchers: int | tuple[int, int] = 2
    concurrency: int = 32
    max_bytes_in_flight: int = 256 * MIB
    piece_bytes: int = 8 * MIB
    max_files_waiting: int = 20_000
    max_attempts: int = 5
    max_files_per_epoch: int | None = None
    max_rows_per_second: float | None = None
    requests: RequestSettings = RequestSettings()
    cache: CacheSettings | None = None
    limits: ReadLimits = ReadLimits()

    @property
    def fetcher_bounds(self) -> tuple[int, int]:
        """The fewest fetch actors and the most."""
        return fetcher_bounds(self.num_fetchers)

    def __post_init__(self) -> None:
        try:
            fetcher_bounds(self.num_fetchers)
        except UsageError as error:
            raise SettingsError(f"FetchSettings(num_fetchers={self.num_fetchers!r}): {error}") from None
        require_positive(
            self,
            "concurrency",
            "max_bytes_in_flight",
            "piece_bytes",
            "max_files_waiting",
            "max_attempts",
        )
        limits = ("max_files_per_epoch", "max_rows_per_second")
        require_positive(self, *(limit for limit in limits if getattr(self, limit) is not None))
