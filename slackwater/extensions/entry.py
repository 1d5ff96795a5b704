"""Entries of features: what an option loads when a run needs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(entry: str) -> Any:
    """Loads an object of a feature.

    An option is a small value that every program with a pipeline imports.  Its feature imports the option, reads
    roots and starts processes; it is loaded when a run needs it.

    Args:
        entry: `module:name`.
    """
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)
