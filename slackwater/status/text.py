"""Values as text: numbers of things in words, and values of JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from state.location import Location


def counted(number: int, thing: str) -> str:
    """`1 file`, `1,234 files`.

    Args:
        thing: the name of one; its plural ends in `s`.
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def shell_root(root: Location) -> str:
    """A root as an argument of a printed command: a path or a URL, quoted for the shell if it needs that."""
    return shlex.quote(str(root))


_LARGEST_EXACT = 2**53  # doubles, in which many programs read the numbers of JSON, lose digits above it


def jsonable(value: Any) -> Any:
    """A value as `json.dumps` takes it: epochs and integers above 2^53 as text, times as ISO text, bytes in hex."""
    if isinstance(value, Mapping):
        return {str(k): _epoch_text(v) if _is_epoch(str(k)) else jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _LARGEST_EXACT else str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    return value


def _is_epoch(name: str) -> bool:
    return name == "epoch" or name.endswith("_epoch")


def _epoch_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else jsonable(value)
