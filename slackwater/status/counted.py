"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 file`, `1,234 files`.

    Args:
        number: how many.
        thing: one of them; its plural ends in `s`.
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
