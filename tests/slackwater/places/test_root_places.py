"""A new root is in no other root and in no table, and branches stay in their root."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from state.errors import SettingsError
from state.location import Location
from state.places.marker import MARKER, Marker, read_marker, write_marker
from tests.slackwater.reading.written_root import write_root

LOG = "_delta_log/00000000000000000000.json"


def pipeline(root: Path, raw: Path) -> sw.Pipeline:
    raw.mkdir(exist_ok=True)
    made = sw.Pipeline("p", root=root)
    made.source("s", raw, format="csv", schema="n int")
    made.view("v", "SELECT * FROM s")
    return made


@pytest.mark.parametrize("is_above", [False, True])
@pytest.mark.parametrize("sign", [MARKER, LOG])
def test_a_new_root_in_a_root_or_a_table_is_refused(tmp_path: Path, sign: str, is_above: bool) -> None:
    table = tmp_path / "t"
    root = table / "deep" / "root" if is_above else table
    if sign == MARKER:
        write_marker(Location(str(table)), Marker("root", "other", str(table), "", "0.1.0"))
        reason = r"in the root of pipeline other \(/.*/t/_slackwater.json\): choose a root outside"
    else:
        (table / LOG).parent.mkdir(parents=True)
        (table / LOG).touch()
        reason = r"in a Delta table \(/.*/t/_delta_log/.*\): choose a root outside"
    before = sorted(table.rglob("*"))
    with pytest.raises(SettingsError, match=reason):
        pipeline(root, tmp_path / "raw").start()
    assert sorted(table.rglob("*")) == before, "nothing was written"


@pytest.mark.more
def test_a_branch_has_a_marker_and_goes_with_it(tmp_path: Path) -> None:
    write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    sw.branch(tmp_path / "root", "trial")
    place = tmp_path / "root" / "branches" / "trial"
    marker = read_marker(Location(str(place)))
    assert marker is not None and (marker.kind, marker.root) == ("root", f"file://{place}")
    sw.drop_branch(tmp_path / "root", "trial")
    assert not place.exists()


def test_a_branch_that_a_link_leads_out_of_the_root_is_refused(tmp_path: Path) -> None:
    write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    (tmp_path / "raw").mkdir(exist_ok=True)
    (tmp_path / "root" / "branches").symlink_to(tmp_path / "raw")
    with pytest.raises(SettingsError, match=r"the root .* branch trial .* a link or a mount leads elsewhere"):
        sw.branch(tmp_path / "root", "trial")
    assert not (tmp_path / "raw" / "trial").exists()
