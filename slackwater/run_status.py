"""What a run says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.reports import SourceProgress


@dataclass(frozen=True)
class SourceStatus(SourceProgress):
    """One source, all fetch actors together, with what its list actor says; `requests` are LIST and GET requests.

    Args:
        listed: files that the last listing found.
        listings: complete listings.
    """

    listed: int = 0
    listings: int = 0


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Args:
        phase: `starting`, `running`, `paused`, `recovering`, `stopping`, `stopped` or `failed`.
        epoch: the last committed one, 0 before the first.
        epochs: committed by this run.
        sources: by name.
        views: name → class, of the views that are being maintained.
        spark: `starting` or `ready`.
        message: what the run waits for or recovers from, if anything.
        caught_up: every object of a listing that began after the start is finished and committed.
        recoveries: failures that the run has survived.
    """

    phase: str = "starting"
    epoch: int = 0
    epochs: int = 0
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    spark: str = "starting"
    message: str = ""
    caught_up: bool = False
    recoveries: int = 0


@dataclass(frozen=True)
class RunReport:
    """What a run did.  `files`, `rows` and `bytes` are those of committed epochs; `notes` say what is odd."""

    epochs: int
    files: int
    rows: int
    bytes: int
    requests: int
    seconds: float
    quarantined: int
    recoveries: int = 0
    notes: tuple[str, ...] = ()
