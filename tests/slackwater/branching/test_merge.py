"""Merges: the views of a branch become those of its root, as a whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.branching.merge_steps import Merged
from spark_bridge.ingest.epoch_rows import LateRows
from spark_bridge.ingest.late_rows import late_delta
from spark_bridge.plans.view_definition import ON_CLOSE
from state.clock import SystemClock
from state.lance.lance_access import open_dataset
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership
from state.tables.catalog import Catalog, delete_expectations, delete_view, put_expectations, put_view
from state.tables.expectations import Expectation, ViewExpectations
from state.tables.fingerprint import version_fingerprint
from state.tables.keys import encode_key
from state.upkeep.quarantine import clear_quarantine
from state.upkeep.tags import put_tag
from tests.cases import few
from tests.slackwater.branching.branched_root import Writer, branched, contents, opened, vacuum_now
from tests.slackwater.branching.killed import deaths
from tests.slackwater.reading.written_root import WrittenRoot, by_carrier, late, write_root


@pytest.fixture(params=few(["local", "s3"], "local"))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> WrittenRoot:
    if request.param == "local":
        return write_root(Location(str(tmp_path / "a root% of")), Location(str(tmp_path / "raw")))
    server, bucket = request.getfixturevalue("s3"), request.getfixturevalue("bucket")
    return write_root(server.location(bucket, "root"), server.location(bucket, "raw"))


@pytest.fixture
def local(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def merged(written: WrittenRoot, *views: str) -> Merged:
    return sw.merge(written.root.url, "trial", views=views or None, storage_options=written.root.storage_options)


def with_new_view(root: Location, **definition: Any) -> Writer:
    """The owner of a branch with another view, which has an internal view."""
    writer = Writer(branched(root))
    writer.add("more", by_carrier({"AA": 3, None: 4}), view_class="aggregate", key=("carrier",), **definition)
    writer.add("more.1", late(1, 2, 3))
    writer.commit()
    return writer


def finish(writer: Writer, path: str, rows: int, status: str = "done", size: int = 1) -> None:
    """The root has read a file more."""
    version = version_fingerprint('"e"', size, None)
    identity = {"source": "flights", "path": path, "version": version, "size": size}
    key = encode_key("flights", path, version)
    writer.delta.put("ledger", key, 1, **identity, status=status, rows_read=rows, rows_bad=0)
    writer.commit()


def catalog(root: Location) -> Catalog:
    return Catalog.of(LanceStateStore.open(root, SystemClock(), read_only=True).scan("catalog"))


def test_new_views_are_taken_with_their_internal_views_and_outlive_the_branch(written: WrittenRoot) -> None:
    branch = with_new_view(written.root).root
    before = contents(written.root)
    expected = contents(branch)
    taken = merged(written)
    assert taken.views == ("more",) and taken.bytes > 0
    assert taken.epoch == opened(written.root).latest_epoch()
    assert contents(written.root) == {**before, "more": expected["more"]}
    sw.drop_branch(written.root.url, "trial", storage_options=written.root.storage_options)
    vacuum_now(written.root)
    assert contents(written.root) == {**before, "more": expected["more"]}
    views = catalog(written.root).views
    assert views["more"].identity == "plan of more" and views["more"].created_epoch == taken.epoch
    owner = Writer(written.root)  # the next owner restores every view
    assert {"more", "more.1"} <= owner.views.keys()
    hidden = open_dataset(written.root.child(owner.views["more.1"].path), owner.views["more.1"].version)
    assert hidden.to_table().equals(late(1, 2, 3))
    assert open_dataset(written.root.child(owner.views["more"].path), "committed").count_rows() == 2


@pytest.mark.more
def test_a_view_with_another_definition_takes_the_place_of_the_old_one(local: WrittenRoot) -> None:
    writer = Writer(branched(local.root))
    writer.add("late", late(5), identity="another plan")
    writer.commit()
    before = contents(local.root)
    assert merged(local).views == ("late",)
    assert contents(local.root) == {**before, "late": sorted(map(repr, late(5).to_pylist()))}
    assert contents(local.root, local.epochs[-1]) == before
    assert catalog(local.root).views["late"].identity == "another plan"
    assert merged(local).views == (), "there is nothing more to take"


@pytest.mark.more
def test_a_view_that_only_the_root_has_changed_stays_as_the_root_has_it(local: WrittenRoot) -> None:
    with_new_view(local.root)
    above = Writer(local.root)
    above.add("late", late(6), identity="a plan of the root")
    delete_view(above.delta, "by_carrier")
    del above.views["by_carrier"]
    above.commit()
    assert merged(local).views == ("more",)
    assert contents(local.root)["late"] == sorted(map(repr, late(6).to_pylist()))
    assert "by_carrier" not in contents(local.root)
    assert merged(local, "late", "by_carrier").views == ("by_carrier", "late"), "they are named"
    assert catalog(local.root).views["late"].identity == "plan"


@pytest.mark.more
def test_a_dataset_that_the_root_has_is_not_copied(local: WrittenRoot) -> None:
    writer = with_new_view(local.root)
    writer.views["more.2"] = replace(writer.views["late"], name="more.2")
    writer.commit()
    merged(local)
    views = LanceStateStore.open(local.root, SystemClock(), read_only=True).head.views
    assert views["more.2"] == replace(views["late"], name="more.2")


@pytest.mark.more
def test_rows_that_a_replaced_view_has_left_to_another_one_are_copied_too(local: WrittenRoot) -> None:
    writer = with_new_view(local.root)
    writer.add("also", late(4))
    writer.views["also.1"] = replace(writer.views["more.1"], name="also.1")
    writer.commit()
    writer.add("more", by_carrier({"AA": 9}), view_class="aggregate", key=("carrier",), identity="another plan")
    writer.add("more.1", late(7))
    writer.commit()
    assert merged(local).views == ("also", "more")
    views = LanceStateStore.open(local.root, SystemClock(), read_only=True).head.views
    for name, rows in (("also.1", late(1, 2, 3)), ("more.1", late(7))):
        assert open_dataset(local.root.child(views[name].path), views[name].version).to_table().equals(rows)


@pytest.mark.more
def test_a_dataset_that_the_root_maintains_no_longer_is_copied(local: WrittenRoot) -> None:
    writer = with_new_view(local.root)
    above = Writer(local.root)
    writer.views["more.2"] = replace(writer.views["late"], name="more.2")
    writer.commit()
    put_view(above.delta, replace(catalog(local.root).views["late"], stopped_epoch=local.epochs[-1]))
    above.commit()
    assert merged(local, "more").views == ("more",)
    views = LanceStateStore.open(local.root, SystemClock(), read_only=True).head.views
    assert views["more.2"].path not in (views["late"].path, writer.views["late"].path)
    assert open_dataset(local.root.child(views["more.2"].path)).to_table().num_rows == 3


@pytest.mark.more
def test_a_dataset_that_root_and_branch_have_made_in_epochs_of_one_number_is_copied(local: WrittenRoot) -> None:
    writer, above = Writer(branched(local.root)), Writer(local.root)
    above.epoch = writer.epoch = max(above.epoch, writer.epoch)
    writer.add("more", late(1, 2, 3), identity="plan of the branch")
    writer.commit()
    above.add("more", late(4), identity="plan of the root")
    above.commit()
    assert writer.views["more"].path == above.views["more"].path
    expected = contents(writer.root)["more"]
    assert merged(local).views == ("more",)
    assert contents(local.root)["more"] == expected


@pytest.mark.more
def test_roots_that_have_read_other_files_are_not_merged(written: WrittenRoot) -> None:
    with_new_view(written.root)
    finish(Writer(written.root), "day=4/new.csv", 3)
    before = contents(written.root)
    with pytest.raises(
        sw.errors.UsageError, match=r"not read the same files of flights: they differ in day=4/new\.csv; run"
    ):
        merged(written)
    assert contents(written.root) == before
    finish(Writer(Location(f"{written.root.url}/branches/trial", written.root.storage_options)), "day=4/new.csv", 2)
    with pytest.raises(sw.errors.UsageError, match=r"they differ in day=4/new\.csv"):
        merged(written)
    finish(Writer(Location(f"{written.root.url}/branches/trial", written.root.storage_options)), "day=4/new.csv", 3)
    assert merged(written).views == ("more",)


@pytest.mark.more
def test_version_set_in_the_views_are_not_compared(local: WrittenRoot) -> None:
    """Files that change, or come and go, are seen by the one that lists at the time."""
    branch = with_new_view(local.root).root
    for size, status in ((1, "replaced"), (2, "forgotten"), (3, "done")):
        finish(Writer(local.root), "day=4/new.csv", 3, status, size)
    finish(Writer(local.root), "day=4/gone.csv", 0, "vanished")
    with pytest.raises(sw.errors.UsageError, match=r"they differ in day=4/new\.csv; run"):
        merged(local)
    finish(Writer(branch), "day=4/new.csv", 3, size=3)
    assert merged(local).views == ("more",)


@pytest.mark.more
def test_a_part_of_a_file_more_is_another_file(local: WrittenRoot) -> None:
    writer = with_new_view(local.root)
    [row] = [each for each in writer.store.rows("queue") if each["path"] == "day=2/big.csv"]
    key = encode_key("flights", "day=2/big.csv", row["version"])
    writer.delta.patch("queue", key, 1, row_offset=2_000)
    writer.commit()
    with pytest.raises(sw.errors.UsageError, match=r"they differ in day=2/big\.csv"):
        merged(local)


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"view_class": "full"}, "is recomputed as a whole"),
        ({"stopped_epoch": 1}, "is not maintained in the branch"),
        ({"stopped_epoch": 1, "error": "division by zero"}, r"has failed in the branch \(division by zero\)"),
    ],
)
@pytest.mark.more
def test_views_that_are_not_whole_are_not_taken(local: WrittenRoot, definition: dict[str, Any], reason: str) -> None:
    writer = Writer(branched(local.root))
    writer.add("more", late(1), **definition)
    writer.commit()
    with pytest.raises(sw.errors.UsageError, match=f"view 'more' {reason}"):
        merged(local, "more")
    if "not maintained" in reason:
        assert merged(local).views == (), "it is not a view of the branch any more"
    with pytest.raises(sw.errors.ViewNotFoundError, match="its views are: by_carrier, late, more"):
        merged(local, "nothing")


@pytest.mark.more
def test_a_view_comes_with_its_readers_and_not_without_what_it_reads(local: WrittenRoot) -> None:
    writer = Writer(branched(local.root))
    reads = {"visible": {"late": ("day",)}, "identity": "a plan over late"}
    writer.add("late", late(5), identity="another plan")
    writer.add("above", late(6), **reads)
    writer.commit()
    with pytest.raises(
        sw.errors.UsageError, match="view 'above' reads 'late', which the root does not have so: merge it"
    ):
        merged(local, "above")
    assert merged(local, "late").views == ("above", "late")


def late_records(writer: Writer, view: str, *rows: int) -> None:
    """Rows of a file that were late for a view."""
    records = pa.table({"_path": ["a.csv"] * len(rows), "_row": rows, "x": rows})
    for key, change in (
        late_delta([LateRows(view, "flights", 0, records)], {}, writer.epoch).changes["quarantine"].items()
    ):
        writer.delta.put("quarantine", key, change.vnode, **change.fields)


def reasons(root: Location) -> list[tuple[int, str]]:
    """Row → the first words of the reason, of the late rows."""
    records = opened(root).ledger.quarantine().to_pylist()
    return sorted((each["row"], each["reason"].split(":")[0]) for each in records if "window" in each["reason"])


@pytest.mark.more
def test_a_view_over_closed_windows_is_not_taken_without_them(local: WrittenRoot) -> None:
    above = Writer(local.root)
    above.add("closed", late(5), definition=f"SELECT ...\n{ON_CLOSE}")
    above.add("over", late(5), visible={"closed": ("day",)})
    above.commit()
    writer = Writer(branched(local.root))
    writer.append("closed", late(6))  # it has passed a window that is open in the root
    writer.add("more", late(5, 6), visible={"over": ("day",)})
    writer.commit()
    before = contents(local.root)
    with pytest.raises(
        sw.errors.UsageError, match="view 'more' reads 'over', whose rows depend on the epochs of each root"
    ):
        merged(local)
    assert contents(local.root) == before
    writer.add("closed", late(5, 6), definition=f"another\n{ON_CLOSE}", identity="another plan")
    writer.add("over", late(5, 6), visible={"closed": ("day",)}, identity="over another plan")
    writer.commit()
    assert merged(local).views == ("closed", "more", "over")


@pytest.mark.more
def test_late_rows_come_with_their_view(local: WrittenRoot) -> None:
    above = Writer(local.root)
    for name in ("mine", "theirs"):
        above.add(name, late(5), definition=f"SELECT ...\n{ON_CLOSE}")
        late_records(above, name, 1)
    above.commit()
    writer = Writer(branched(local.root))
    writer.add("theirs", late(6), definition=f"another\n{ON_CLOSE}", identity="another plan")
    writer.add("more", late(6), definition=f"SELECT ...\n{ON_CLOSE}")
    for name in ("mine", "theirs", "more"):
        late_records(writer, name, 2)
    writer.commit()
    clear_quarantine(Writer(local.root).store, None, above.epoch)
    assert merged(local).views == ("more", "theirs")
    assert reasons(local.root) == [(2, "view more"), (2, "view theirs")]
    owner = Writer(local.root)
    assert owner.store.scan("quarantine").num_rows == 2, "nothing is left of those that were cleared"
    sw.drop_branch(local.root.url, "trial")
    assert reasons(local.root) == [(2, "view more"), (2, "view theirs")]


@pytest.mark.more
def test_views_that_the_branch_is_building_hinder_no_others(local: WrittenRoot) -> None:
    writer = with_new_view(local.root)
    for name, reads in (("below", "flights"), ("above", "below")):
        writer.add(f"{name}.next", late(1), visible={reads: ("day",)})
        writer.views[f"{name}.next"] = replace(writer.views[f"{name}.next"], pinned_epoch=local.epochs[-1])
    writer.commit()
    assert merged(local).views == ("more",)
    assert "above.next" not in catalog(local.root).views


@pytest.mark.more
def test_a_view_under_one_that_stays_is_not_replaced(local: WrittenRoot) -> None:
    above = Writer(local.root)
    above.add("mine", late(6), visible={"late": ("day",)})
    above.commit()
    writer = Writer(branched(local.root, epoch=local.epochs[-1]))
    writer.add("late", late(5), identity="another plan")
    writer.commit()
    with pytest.raises(
        sw.errors.UsageError, match=r"view 'mine' of the root reads one that the branch replaces \(late\)"
    ):
        merged(local)


@pytest.mark.more
def test_a_view_under_one_that_the_root_is_building_is_not_replaced(local: WrittenRoot) -> None:
    writer = Writer(branched(local.root))
    writer.add("late", late(5), identity="another plan")
    writer.commit()
    above = Writer(local.root)
    above.add("mine.next", late(6), visible={"late": ("day",)})
    above.views["mine.next"] = replace(above.views["mine.next"], pinned_epoch=local.epochs[-1])
    above.commit()
    with pytest.raises(
        sw.errors.UsageError, match=r"view 'mine' of the root reads one that the branch replaces \(late\)"
    ):
        merged(local)


@pytest.mark.more
def test_a_view_is_read_by_internal_views_too(local: WrittenRoot) -> None:
    reads = {"visible": {"late": ("day",)}}
    above = Writer(local.root)
    above.add("mine", late(6), visible={"mine.1": ()})
    above.add("mine.1", late(6), **reads)
    above.commit()
    writer = Writer(branched(local.root))
    writer.add("late", late(5), identity="another plan")
    writer.add("mine", late(7), visible={"mine.1": ()})
    writer.add("mine.1", late(7), **reads)
    writer.commit()
    assert merged(local).views == ("late", "mine")
    assert contents(local.root)["mine"] == sorted(map(repr, late(7).to_pylist()))


@pytest.mark.more
def test_an_empty_view_is_taken(local: WrittenRoot) -> None:
    writer = Writer(branched(local.root))
    writer.add("more", late())
    writer.commit()
    assert merged(local).views == ("more",)
    assert contents(local.root)["more"] == []


@pytest.mark.more
def test_a_root_with_a_run_is_not_merged_into(local: WrittenRoot) -> None:
    with_new_view(local.root)
    ownership = Ownership(local.root, SystemClock(), run_id="a run", pipeline="flights")
    ownership.acquire()
    try:
        with pytest.raises(sw.errors.OwnedError):
            merged(local)
    finally:
        ownership.release()


@pytest.mark.more
def test_a_death_at_any_step_of_a_merge_takes_all_or_nothing(
    local: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = with_new_view(local.root).root
    before, views = contents(local.root), contents(branch)
    after = {**before, "more": views["more"]}
    seen = []
    for _ in deaths(monkeypatch, lambda: merged(local)):
        seen.append(contents(local.root))
        assert seen[-1] in (before, after)
        assert contents(branch) == views
        vacuum_now(local.root)
        assert contents(local.root) == seen[-1]
        if seen[-1] == after:
            break
    assert before in seen and after in seen
    assert merged(local).views == ()
    Writer(local.root).commit()
    vacuum_now(local.root)
    datasets = sorted(each.name for each in (local.root.path / "views").iterdir())
    assert len(datasets) == 4, f"of a merge that died no dataset stays: {datasets}"


@pytest.mark.more
def test_a_view_whose_rows_the_branch_has_not_judged_holds_back_until_a_run_has(local: WrittenRoot) -> None:
    above = Writer(local.root)
    put_expectations(above.delta, ViewExpectations("late", "hold", {"n is positive": Expectation("n > 0")}))
    before = above.commit().epoch
    writer = Writer(branched(local.root))
    delete_expectations(writer.delta, "late")
    writer.add("late", late(5), identity="another plan")
    writer.commit()
    taken = merged(local)
    store = opened(local.root)
    assert (taken.views, store.latest_epoch(), store.published_epoch()) == (("late",), taken.epoch, before)
    [held] = store.views.held()
    assert held["view"] == "late" and "its rows are from branch 'trial': the next epoch counts" in str(held["errors"])


@pytest.mark.more
def test_a_merge_that_would_move_the_tag_of_a_user_is_refused(local: WrittenRoot) -> None:
    writer = with_new_view(local.root)
    put_expectations(writer.delta, ViewExpectations("more", "hold", {"n is positive": Expectation("n > 0")}))
    writer.commit()
    put_tag(Writer(local.root).store, "published", opened(local.root).latest_epoch())
    with pytest.raises(
        sw.errors.UsageError, match="the root has a tag 'published', which views with on_violation=\"hold\""
    ):
        merged(local)
