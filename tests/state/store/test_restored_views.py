from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from state.lance.lance_access import open_dataset
from state.lance.view_dataset import create, restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.records import ViewVersion

PATH, OTHER = "views/a.1-1.lance", "views/b-1.lance"


def _rows(n: int) -> pa.Table:
    return pa.table({"n": [n]})


def test_a_dataset_of_several_views_is_fenced_once_and_the_latest_version_is_built_upon(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    for path in (PATH, OTHER):
        create(root.child(path), _rows(1))
        lance.write_dataset(_rows(2), str(root.child(path).path), mode="overwrite")
    before = {
        "a.1": ViewVersion("a.1", PATH, 2),
        "b": ViewVersion("b", OTHER, 1),
        "b.1": ViewVersion("b.1", PATH, 2),
        "c.1": ViewVersion("c.1", PATH, 1),  # it is maintained no longer
    }
    after = restored_views(before, lambda view: restore(root, view, 2))
    assert [(each.name, each.path) for each in after.values()] == [(each.name, each.path) for each in before.values()]
    assert after["a.1"].datasets == after["b.1"].datasets
    for name, n in {"a.1": 2, "b": 1, "c.1": 1}.items():
        dataset = open_dataset(root.child(after[name].path), after[name].version)
        assert dataset.to_table()["n"].to_pylist() == [n]
    latest = {path: open_dataset(root.child(path)).version for path in (PATH, OTHER)}
    assert latest == {PATH: after["a.1"].version, OTHER: after["b"].version}
