"""Errors in one line."""

from __future__ import annotations

from actors.telemetry.text import first_line


def test_the_first_line_stands_for_an_error() -> None:
    assert first_line(ValueError("  one\ntwo")) == "one"
    assert first_line(ValueError()) == "no reason given"
