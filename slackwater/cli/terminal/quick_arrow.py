"""Arrow without pandas: a quarter of the time of a short command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas:
    """A finder that says that pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
        return None


def load_arrow() -> None:
    """Loads Arrow so that it does not load pandas, as it otherwise does with its first value (0.25 s).

    Conversions to pandas load it later.  Only frames as input are no longer recognized, so a process that runs a user's
    code must not call this.  A process that has loaded pandas stays as it is.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.scalar(None)
    finally:
        sys.meta_path.remove(finder)
