"""Names under which epoch records know datasets that are no views yet: they have a dot, which no view's name has."""

from __future__ import annotations

_NEXT = ".next"


def next_name(view: str) -> str:
    """The name of what a view will be when it has caught up."""
    return view + _NEXT


def base_name(name: str) -> str:
    """The name of the view that something with this name is, or will be."""
    return name.removesuffix(_NEXT)


def is_view(name: str) -> bool:
    """Whether this is the name of a view that users see."""
    return "." not in name
