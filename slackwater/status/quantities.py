"""Counts, rates, bytes and seconds as short text for people, of limited width."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSANDS = ("", " k", " M", " G", " T")


def human_bytes(count: float) -> str:
    """A count of bytes for people, in powers of 1,000."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def human_count(count: int, width: int = 7) -> str:
    """A count in full if it fits into `width` characters, else in thousands, millions and so on."""
    text = f"{count:,}"
    return text if len(text) <= width else _scaled(float(count))


def human_rate(per_s: float) -> str:
    """A rate per second, in at most seven characters."""
    if per_s < 0.05:
        return "0"
    return f"{per_s:.1f}" if per_s < 10 else _scaled(per_s)


def human_seconds(seconds: float) -> str:
    """A duration in at most seven characters."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 100 * 3600 else f"{seconds / 86_400:.0f} d"


def human_duration(seconds: float) -> str:
    """A long duration: `4 s`, `3 min 07 s`, `5 h 20 min`, `3 d 4 h`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def _scaled(number: float) -> str:
    power = 0
    while number >= 999.5 and power < len(_THOUSANDS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.0f}{_THOUSANDS[power]}" if power == 0 or number >= 99.95 else f"{number:.1f}{_THOUSANDS[power]}"
