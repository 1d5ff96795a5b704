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
_UNFINISHED = r"(?i:~\$.*|thumbs\.db|.*(?:\.tmp|\._copying_|\.crswap))|.*\.inprogress\..*"
_IS_UNFINISHED = re.compile(rf"(?s){_UNFINISHED}")
"""Names of files that a program has not finished, or keeps for itself: of Hadoop, Flink, Chrome, Office and Windows."""
_UNFINISHED_WORDS = ("tmp", "_copying_", "crswap", "inprogress", "~$", "thumbs.db")
_NAMES_HIDDEN = re.compile(r"(?:^|[{,])[_.]")
_HIDDEN_NAME = r"(?s)(?:^|/)(?:[_.][^/]*)?$"
_HIDDEN_PATH = rf"(?s)(?:^|/)(?:\.[^/]*/|_[^/=]*/|(?:[_.][^/]*)?$|(?:{_UNFINISHED.replace('.*', '[^/]*')})$)"


def _table(members: bytes) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, bool)
    table[[*members]] = True
    return table


# A page without these bytes at these places has no hidden path.
_SLASH = ord("/")
_IS_FIRST, _IS_LAST, _INSIDE = _table(b"_.~/"), _table(b"_/pPbB"), b".inprogress."


class PathFilter:
    """Accepts names that match a glob pattern and are not hidden.

    Hidden, as in Spark, are a name and all names below a directory that starts with `_` or `.`; a directory such as
    `_x=1/` hides nothing.  Names of unfinished files, such as `*.tmp`, are hidden too.

    A pattern accepts the hidden names and directories that it names: `_staging/*.csv`, `**/*.tmp`.  A directory is
    named by a part of the pattern that starts with `_` or `.`.

    Args:
        pattern: `*` and `?` within a part, `**` over parts, `[ab]`, `{a,b}`; relative to the source's URL.
        hides_directories: False for the rule of older sources: only a last part that starts with `_` or `.` is hidden.

    Example:
        >>> PathFilter("**/*.{csv,csv.gz}").accepts("day=1/a.csv")
        True
    """

    def __init__(self, pattern: str = "**", *, hides_directories: bool = True) -> None:
        self._pattern, self._hides_directories = pattern, hides_directories
        *directories, name = pattern.split("/")
        self._takes_hidden = name.startswith(("_", "."))
        self._takes_unfinished = any(word in name.lower() for word in _UNFINISHED_WORDS)
        self._named_directories = [part for part in directories if _NAMES_HIDDEN.search(part)]
        any_name_with_suffix = _SUFFIX.fullmatch(pattern)
        self._suffix = any_name_with_suffix.group(1) if any_name_with_suffix else None
        self._matches = None if pattern in _EVERYTHING else glob.compile(pattern, flags=_FLAGS).match

    def accepts(self, relative_path: str) -> bool:
        """True if the source reads the file of this name."""
        if self._hides(relative_path):
            return False
        if self._suffix is not None:
            return relative_path.endswith(self._suffix)
        return self._matches is None or bool(self._matches(relative_path))

    def may_accept_below(self, directory: str) -> bool:
        """False if no file below a directory can match the pattern."""
        if any(map(self._hides_below, directory.split("/"))):
            return False
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
        taken = ~self._hidden(paths) if _may_be_hidden(paths) else np.ones(len(paths), bool)
        if self._suffix is not None:
            taken &= np.asarray(pc.ends_with(paths, self._suffix))
        elif self._matches is not None:
            taken &= np.fromiter(map(bool, map(self._matches, paths.to_pylist())), bool, len(paths))
        return rows if taken.all() else rows.filter(pa.array(taken))

    def reason(self, relative_path: str) -> Literal["hidden", "pattern"] | None:
        """The reason against a name, `hidden` or `pattern`; None if it is accepted."""
        if self.accepts(relative_path):
            return None
        return "hidden" if self._hides(relative_path) else "pattern"

    def _hides(self, path: str) -> bool:
        *directories, name = path.split("/")
        if not name or (name[0] in "_." and not self._takes_hidden):
            return True
        if not self._hides_directories:
            return False
        if not self._takes_unfinished and _IS_UNFINISHED.fullmatch(name):
            return True
        return any(map(self._hides_below, directories))

    def _hides_below(self, directory: str) -> bool:
        """True if a directory, one part of a path, hides the names below it."""
        if not self._hides_directories or directory[:1] not in ("_", "."):
            return False
        if directory[0] == "_" and "=" in directory:
            return False
        return not any(glob.globmatch(directory, part, flags=_FLAGS) for part in self._named_directories)

    def _hidden(self, paths: pa.StringArray) -> npt.NDArray[np.bool_]:
        """For each path whether it is hidden."""
        form = _HIDDEN_PATH if self._hides_directories else _HIDDEN_NAME
        hidden = np.asarray(pc.match_substring_regex(paths, form)).astype(bool)
        if self._takes_hidden or self._takes_unfinished or self._named_directories:
            at = np.flatnonzero(hidden)
            hidden[at] = [self._hides(path) for path in paths.take(pa.array(at)).to_pylist()]
        return hidden

    def __repr__(self) -> str:
        return f"PathFilter({self._pattern!r})"


def _may_be_hidden(paths: pa.StringArray) -> bool:
    """False if no path is hidden by any rule."""
    _, ends, content = paths.buffers()
    borders = np.frombuffer(ends, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    if content is None or (borders[1:] == borders[:-1]).any():
        return True
    text = np.frombuffer(content, np.uint8)
    if _IS_FIRST[text[borders[:-1]]].any() or _IS_LAST[text[borders[1:] - 1]].any():
        return True
    names = text[borders[0] : borders[-1]]
    after_slash = np.flatnonzero(names[:-1] == _SLASH) + 1
    return bool(_IS_FIRST[names[after_slash]].any()) or _INSIDE in names.tobytes()
