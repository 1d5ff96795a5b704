"""The names that only Slackwater writes, each kind in a directory of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ReservedForm:
    """A form of names.

    Args:
        about: the objects, in words.
        pattern: matches the whole name, relative to the place.
    """

    about: str
    pattern: re.Pattern[str]

    def covers(self, name: str) -> bool:
        return self.pattern.fullmatch(name) is not None


# obstore writes a local file as NAME#1 before it renames it.
_STAGED = r"(?:#\d+)?"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_DATASET = (
    r"(?:_versions/(?:\d{1,20}\.manifest(?:\.torn(?:\.\d+)?)?|latest_version_hint\.json|\.tmp_[^/]*)"
    r"|_transactions/[^/]+\.txn"
    r"|data/[^/]+\.lance"
    r"|_deletions/\d+-\d+-\d+\.(?:arrow|bin)"
    rf"|_indices/{_UUID}/[^/]+"
    r"|_refs/tags/[^/]+\.json"
    rf"|_latest\.manifest){_STAGED}"
)
_PIN = r"pins/[^/]+-\d+-\d+\.json"
_COMMAND = r"commands/\d{13}-[0-9a-f]{16}(?:\.answer)?\.json"
_VIEW_DATASET = r"(?:views|view_state)/[^/]+-\d+(?:-\w+)?\.lance"
_DATASETS_OF_ROOT = rf"(?:(?:(?:origin/)?state|after)\.lance|{_VIEW_DATASET})"
_SWAPPED = r"(?:owner\.json|alerts\.json|tables/[^/]+/rows\.parquet)(?:\.lock)?"
_PROBE = r"probes/[A-Za-z0-9._-]{1,200}"
_STORE_RECORD = r"store\.json"
_MARKER = r"_slackwater\.json"
_FILES_OF_ROOT = rf"(?:{_SWAPPED}|{_PIN}|{_COMMAND}|{_PROBE}|{_STORE_RECORD}|{_MARKER}){_STAGED}"
_ROOT = rf"{_FILES_OF_ROOT}|{_DATASETS_OF_ROOT}/{_DATASET}"

_RANGE = r"[0-9a-f]{40}\.range"
_CLASSES = r"[0-9a-f]{24}(?:\.(?:driver|executor)-(?:pid)?\d+\.classes|\.jsa|\.list|\.part|\.lock)"

CACHED_RANGES = ReservedForm("the ranges of a cache", re.compile(rf"{_RANGE}(?:-\d+\.partial)?"))
CLASS_ARCHIVES = ReservedForm("the class archives and their lists", re.compile(_CLASSES))
DATASETS_OF_ROOT = ReservedForm("the datasets of a root", re.compile(_DATASETS_OF_ROOT))
VIEW_DATASETS = ReservedForm("the datasets of views, below a root", re.compile(_VIEW_DATASET))
DATASET = ReservedForm("the files of a Lance dataset", re.compile(_DATASET))
ROOT = ReservedForm("the files of a root", re.compile(_ROOT))
PROBES = ReservedForm("the objects of a probe of the store", re.compile(_PROBE))
STORE_RECORD = ReservedForm("the record of a root's store", re.compile(_STORE_RECORD))
PINS = ReservedForm("the pins of readers", re.compile(_PIN))
COMMANDS = ReservedForm("the commands to the owner of a root, and its answers", re.compile(_COMMAND))
CLAIMED_FILES = ReservedForm("the files that are being deleted", re.compile(r"\.slackwater-[0-9a-f]{32}\.deleting"))
PART_FILES = ReservedForm("the incomplete files of moves", re.compile(r"\.slackwater-[0-9a-f]{32}\.part"))
