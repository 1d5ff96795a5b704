"""How wide and how deep the JSON of a file is, before Arrow builds columns of it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from actors.file_errors import UnreadableFile
from actors.settings import ReadLimits


@dataclass(frozen=True)
class JsonShape:
    """The shape of some lines.

    Args:
        num_columns: fields with different paths.
    """

    num_columns: int

    @classmethod
    def of(cls, block: bytes, limits: ReadLimits) -> JsonShape:
        """The shape of a block of lines.  A line that is no JSON has none: the parser that comes next says why.

        Raises:
            UnreadableFile: it is wider or deeper than the limits.
        """
        paths: set[tuple[str, ...]] = set()
        for number, line in enumerate(filter(bytes.strip, io.BytesIO(block)), 1):
            might_be_deep = line.count(b"[") + line.count(b"{") > limits.max_nesting
            try:
                _add_paths(json.loads(line), (), limits.max_nesting, paths)
            except (RecursionError, _TooDeep):
                raise UnreadableFile(
                    f"its JSON has more than {limits.max_nesting} levels (ReadLimits.max_nesting)", number
                ) from None
            except ValueError:
                if might_be_deep:
                    raise UnreadableFile("the line is not a JSON object", number) from None
            if len(paths) > limits.max_columns:
                raise UnreadableFile(f"it has more than {limits.max_columns} columns (ReadLimits.max_columns)", number)
        return cls(len(paths))


class _TooDeep(Exception):
    """A value is deeper than it may be."""


def _add_paths(value: Any, path: tuple[str, ...], levels: int, paths: set[tuple[str, ...]]) -> None:
    if not isinstance(value, (dict, list)):
        paths.add(path)
        return
    if levels == 0:
        raise _TooDeep
    if isinstance(value, dict):
        for name, field in value.items():
            _add_paths(field, (*path, name), levels - 1, paths)
    else:
        for element in value:
            _add_paths(element, path, levels - 1, paths)
