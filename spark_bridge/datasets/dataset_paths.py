"""Paths of the datasets of views, below the root."""

from __future__ import annotations


def view_path(name: str, epoch: int) -> str:
    """Path below the root of a view that an epoch creates; never used twice."""
    return f"views/{name}-{epoch}.lance"


def empty_path(name: str, epoch: int) -> str:
    """Path below the root of a view that fails in its first epoch."""
    return f"views/{name}-{epoch}-empty.lance"


def state_path(name: str, epoch: int) -> str:
    """Path below the root of a view's separately stored partials."""
    return f"view_state/{name}-{epoch}.lance"


def distinct_path(name: str, epoch: int) -> str:
    """Path below the root of the values that a view with DISTINCT has seen."""
    return f"view_state/{name}-{epoch}-distinct.lance"
