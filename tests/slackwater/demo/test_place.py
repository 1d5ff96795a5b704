"""The places of the demo: a file that was replaced comes back in the version that a run has read."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.objects.object_store import ObjectStore
from slackwater.demo.place import open_place
from state.location import Location


@pytest.mark.parametrize("where", ["bucket", "directory"])
def test_a_replaced_file_comes_back_as_it_was(tmp_path: Path, where: str) -> None:
    with open_place(tmp_path / "store" if where == "directory" else None) as place:
        store = ObjectStore(Location(place.raw, place.storage_options))
        place.put("csv/a.csv", b"first")
        first = store.find("flights", "csv/a.csv")
        place.put("csv/a.csv", b"other")
        assert store.find("flights", "csv/a.csv") != first
        place.put_back("csv/a.csv")
        back = store.find("flights", "csv/a.csv")
        assert first is not None and back is not None
        assert back.version == first.version
