"""The layout of a JSON file, for other readers of the same files."""

from __future__ import annotations

import codecs
from typing import Literal, TypeAlias

from actors.formats.text.json_records import begins_with_array, records

JsonLayout: TypeAlias = Literal["lines", "array", "objects"]
"""One object a line; arrays; or objects over lines and side by side."""


def json_layout(head: bytes) -> JsonLayout:
    """The layout of a file by its first bytes, decompressed."""
    head = head.removeprefix(codecs.BOM_UTF8)
    if begins_with_array(head):
        return "array"
    found = records(head, is_start=True, is_last=False, of_array=False, require_time=lambda: None)
    starts, ends = found.starts.tolist(), found.ends.tolist()
    is_by_lines = all(b"\n" not in head[start:end] for start, end in zip(starts, ends, strict=True)) and all(
        b"\n" in head[end:start] for end, start in zip(ends, starts[1:], strict=False)
    )
    return "lines" if is_by_lines else "objects"
