"""Values from files, cut to what a page shows."""

from __future__ import annotations

import codecs
import json
from typing import Any

from slackwater.status.json_values import jsonable

_LONGEST_CELL = 500
_LONGEST_RAW = 4096


def cell(value: Any) -> Any:
    """A value of a view's row: a number, a boolean, null, or text; what has parts as JSON."""
    plain = jsonable(value)
    if isinstance(plain, (dict, list)):
        plain = json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, str) and len(plain) > _LONGEST_CELL:
        return f"{plain[:_LONGEST_CELL]}… ({len(plain):,} characters)"
    return plain


def raw_text(raw: bytes) -> str:
    r"""The beginning of a record as text; bytes that are no UTF-8 as escapes such as `\xff`."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return decoder.decode(raw[:_LONGEST_RAW], final=len(raw) <= _LONGEST_RAW)
