"""Filter of listed names: the glob pattern of a source, and hidden files."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from wcmatch import glob

_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.CASE | glob.FORCEUNIX
# The most frequent pattern; a comparison of suffixes is several times as fast as a regular expression.
_SUFFIX = re.compile(r"\*\*/\*([\w.-]+)")
_EVERYTHING = ("**", "**/*")
_SLASH = ord("/")
_HIDDEN = np.zeros(256, bool)
_HIDDEN[[*b"_.", _SLASH]] = True


class PathFilter:
    """Accepts names that match a glob pattern and are not hidden.

    A name is hidden if its last part starts with `_` or `.`, as in Spark; a directory such as `_x=1/` hides nothing.
    A pattern whose last part starts with `_` or `.` accepts hidden names.

    Args:
        pattern: `*` and `?` within a part, `**` over parts, `[ab]`, `{a,b}`; relative to the source's URL.

    Example:
        >>> PathFilter("**/*.{csv,csv.gz}").accepts("day=1/a.csv")
        True
    """

    def __init__(self, pattern: str = "**") -> None:
        self._pattern = pattern
        self._takes_hidden = pattern.rpartition("/")[2].startswith(("_", "."))
        any_name_with_suffix = _SUFFIX.fullmatch(pattern)
        self._suffix = any_name_with_suffix.group(1) if any_name_with_suffix else None
        self._matches = None if pattern in _EVERYTHING else glob.compile(pattern, flags=_FLAGS).match

    def accepts(self, relative_path: str) -> bool:
        """True if the source reads the file of this name."""
        name = relative_path[relative_path.rfind("/") + 1 :]
        if name[:1] in ("_", ".", "") and not (name and self._takes_hidden):
            return False
        if self._suffix is not None:
            return relative_path.endswith(self._suffix)
        return self._matches is None or bool(self._matches(relative_path))

    def may_accept_below(self, directory: str) -> bool:
        """False if no file below a directory can match the pattern."""
        if "{" in self._pattern:
            return True
        parts, wanted = directory.split("/"), self._pattern.split("/")
        for part, pattern in zip(parts, wanted, strict=False):
            if pattern == "**":
                return True
            if not glob.globmatch(part, pattern, flags=_FLAGS):
                return False
        return len(parts) < len(wanted)

    def taken(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows whose `path` is accepted."""
        paths = rows["path"]
        if not len(paths):
            return rows
        firsts = _last_parts(paths)
        taken = (firsts != _SLASH) if self._takes_hidden else ~_HIDDEN[firsts]
        if self._suffix is not None:
            taken &= np.asarray(pc.ends_with(paths, self._suffix))
        elif self._matches is not None:
            taken &= np.fromiter(map(bool, map(self._matches, paths.to_pylist())), bool, len(paths))
        return rows if taken.all() else rows.filter(pa.array(taken))

    def reason(self, relative_path: str) -> Literal["hidden", "pattern"] | None:
        """The reason against a name, `hidden` or `pattern`; None if it is accepted."""
        if self.accepts(relative_path):
            return None
        name = relative_path.rpartition("/")[2]
        is_hidden = not name or (name.startswith(("_", ".")) and not self._takes_hidden)
        return "hidden" if is_hidden else "pattern"

    def __repr__(self) -> str:
        return f"PathFilter({self._pattern!r})"


def _last_parts(paths: pa.StringArray) -> npt.NDArray[np.uint8]:
    """The first byte of the last part of each path; `/` for an empty part."""
    _, ends, content = paths.buffers()
    borders = np.frombuffer(ends, np.int32)[paths.offset : paths.offset + len(paths) + 1].astype(np.int64)
    text = np.append(np.frombuffer(content or b"", np.uint8)[borders[0] : borders[-1]], np.uint8(_SLASH))
    borders -= borders[0]
    slashes = np.flatnonzero(text == _SLASH)
    before = np.append(-1, slashes)[np.searchsorted(slashes, borders[1:])]
    starts = np.maximum(before + 1, borders[:-1])
    firsts: npt.NDArray[np.uint8] = text[np.minimum(starts, len(text) - 1)]
    firsts[starts >= borders[1:]] = _SLASH
    return firsts
