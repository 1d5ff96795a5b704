"""Errors in one line."""

from __future__ import annotations


def first_line(error: Exception) -> str:
    """The first line of an error's text, without the addresses and traces behind it."""
    return (str(error).strip().splitlines() or ["no reason given"])[0]
