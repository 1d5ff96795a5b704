"""The graph of views as text."""

from __future__ import annotations

from slackwater.cli.display.view_graph import graph_lines


def test_a_graph_is_drawn_below_its_sources() -> None:
    reads = {"a": ("t",), "b": ("a", "u"), "c": ("a",), "both": ("b", "c"), "alone": ("u",)}
    assert graph_lines(reads) == [
        "t",
        "└─ a",
        "   ├─ b",
        "   │  └─ both",
        "   └─ c",
        "      └─ both",
        "u",
        "├─ b …",
        "└─ alone",
    ]


def test_views_over_sources_alone_have_no_graph() -> None:
    assert graph_lines({"a": ("t",), "b": ("t", "u")}) == []
