"""JSON documents that another program may have written: errors of one kind for every content."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any, NoReturn

_MOST_DIGITS = 20


def json_of(content: bytes | str) -> Any:
    """Parses a document.

    Every number of the result can be converted to an int and to a float.

    Raises:
        ValueError: the content is not JSON in UTF-8, is nested too deeply, or has a number that is NaN, infinite (also
            as `1e999`), or an integer of more than 20 digits.
    """
    try:
        return json.loads(content, parse_float=_finite, parse_int=_short, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None


def moment_of(text: Any) -> datetime:
    """Parses a time with its zone, in ISO format.

    Raises:
        ValueError: the value is not such a text.
    """
    if not isinstance(text, str):
        raise ValueError(f"a time is text, not {type(text).__name__}")
    moment = datetime.fromisoformat(text)
    # Also refuses the first and the last day if another zone has no such day.
    if moment.tzinfo is None or not 2 <= moment.year <= 9998:
        raise ValueError("the time has no zone, or is outside of the calendar")
    return moment


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _short(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text[:_MOST_DIGITS]} is not a number that this document may have")
