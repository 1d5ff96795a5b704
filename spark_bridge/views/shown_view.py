"""How far a view is that epochs show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ShownView:
    """One view.

    Args:
        view_class: how it is maintained.
        rows: how many it has; None until it was written to, or computed, since the attempt began.
        behind_s: how much older than the latest rows those are that it shows: only a view that is recomputed as a
            whole lags.
    """

    name: str
    view_class: str
    rows: int | None
    behind_s: float
