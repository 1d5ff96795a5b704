"""Every error that is raised on purpose, for `except sw.errors.OwnedError`; `state/errors.py` draws the tree."""

from state import errors
from state.errors import *  # noqa: F403

__all__ = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
