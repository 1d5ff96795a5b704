"""The views of a head after a take-over: each dataset is fenced, also one that several views have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from state.tables.records import ViewVersion


def restored_views(
    views: Mapping[str, ViewVersion], restore: Callable[[ViewVersion], ViewVersion]
) -> dict[str, ViewVersion]:
    """Makes the recorded versions the latest ones, each once.

    The views of one dataset are at one version, except views that are maintained no longer.  The latest of the
    recorded versions is restored last, so that later commits follow it.

    Args:
        views: name → version that the head records.
        restore: restores a view, see `state.store.root.Root.restore`.

    Returns:
        Name → the new version, with the same rows.
    """
    restored: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
    for view in sorted(views.values(), key=lambda each: each.version):
        datasets = tuple(view.datasets.items())
        if datasets not in restored:
            restored[datasets] = restore(view).datasets
    return {name: view.at(restored[tuple(view.datasets.items())]) for name, view in views.items()}
