"""The places of the demo: a file that was replaced comes back in the version that a run has read."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.objects.object_store import ObjectStore
from slackwater.cli.terminal.output import Output
from slackwater.plugins.demo.place import open_place
from slackwater.plugins.demo.scenario import run_demo
from state.errors import UsageError
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


def test_a_file_of_a_user_in_the_directory_of_the_demo_stays(tmp_path: Path) -> None:
    with open_place(tmp_path / "store") as place:
        place.put("csv/a.csv", b"first")
        users = {name: tmp_path / "store" / "raw" / "csv" / name for name in ("b.csv", ".c.csv", "notes")}
        for file in users.values():
            file.write_bytes(b"the only copy")
        for key in ("csv/b.csv", "csv/c.csv"):
            with pytest.raises(FileExistsError):
                place.put(key, b"of the demo")
        assert [file.read_bytes() for file in users.values()] == [b"the only copy"] * 3
    with pytest.raises(FileExistsError), open_place(tmp_path / "store"):
        pass
    assert (tmp_path / "store" / "raw" / "csv" / "a.csv").read_bytes() == b"first"


@pytest.mark.parametrize("name", ["orders.csv", ".hidden", "store/raw/csv/a.csv", "run.log"])
def test_a_directory_that_is_not_empty_is_refused_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"the only copy")
    for local in (True, False):
        with pytest.raises(UsageError, match="is not empty"):
            run_demo(Output(), local, tmp_path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [tmp_path / name]
    assert (tmp_path / name).read_bytes() == b"the only copy"
