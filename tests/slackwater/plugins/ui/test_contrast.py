"""Tests of the page's colours, light and dark: a contrast of 4.5 for text, of 3 for shapes (WCAG AA)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

TEXTS = ("text", "soft", "accent", "good", "warn", "bad")
GROUNDS = ("back", "panel")
SHAPES = ("fetch", "align", "spark", "collect", "accent", "bad")


def colours(block: str) -> dict[str, str]:
    style = files("slackwater.plugins.ui").joinpath("assets").joinpath("style.css").read_text()
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", style.partition(block)[2].partition("}")[0]))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [":root {", ':root[data-theme="dark"] {', ':root:not([data-theme="light"]) {'])
def test_what_is_written_can_be_read(theme: str) -> None:
    found = colours(theme)
    for ground in GROUNDS:
        for name in TEXTS:
            assert contrast(found[name], found[ground]) >= 4.5, (theme, name, ground)
        for name in SHAPES:
            assert contrast(found[name], found[ground]) >= 3, (theme, name, ground)
    for name in ("text", "soft"):
        assert contrast(found[name], found["node"]) >= 4.5
    assert contrast(found["panel"], found["bad"]) >= 4.5


def test_dark_is_the_same_whether_it_was_chosen_or_is_the_system_s() -> None:
    assert colours(':root[data-theme="dark"] {') == colours(':root:not([data-theme="light"]) {') != {}
