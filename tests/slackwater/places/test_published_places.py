"""Published tables have markers, and a place that changes during a run pauses the publication before it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.extensions.table_target import places_of
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.place_watch import PlaceWatch
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import PublicationLoop, PublicationReport
from slackwater.plugins.publish.publications import Publications
from slackwater.plugins.publish.start_check import check_publications
from state.clock import ManualClock, SystemClock
from state.errors import SettingsError, UsageError
from state.location import Location
from state.places.marker import MARKER, Marker, read_marker, write_marker
from tests.slackwater.plugins.publish.beside import state
from tests.slackwater.plugins.publish.growing_view import GrowingView, events
from tests.slackwater.plugins.publish.published import contents, require_equal, target_in
from tests.waiting import eventually

FORMATS = pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])


def view_in(directory: Path) -> GrowingView:
    view = GrowingView(Location(str(directory / "root")))
    view.create(events(1, 2))
    return view


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


@FORMATS
def test_a_published_table_has_a_marker_that_readers_skip(tmp_path: Path, format: str) -> None:
    view, target = view_in(tmp_path), target_in(tmp_path, format)
    sw.publish(view.store, "v", target)
    marker = read_marker(Location(str(tmp_path / "v")))
    assert marker is not None and (marker.kind, marker.view, marker.version) == ("table", "v", sw.__version__)
    assert marker.root == view.store.root
    require_equal(view.store, tmp_path, format)
    view.table.append(events(3))
    view.commit()
    sw.publish(view.store, "v", target)
    require_equal(view.store, tmp_path, format)


@pytest.mark.more_after(1)
@FORMATS
def test_a_table_of_an_earlier_version_gets_its_marker_and_a_foreign_object_stays(tmp_path: Path, format: str) -> None:
    view, target, marker = view_in(tmp_path), target_in(tmp_path, format), tmp_path / "v" / MARKER
    sw.publish(view.store, "v", target)
    marker.unlink()
    sw.publish(view.store, "v", target)
    assert marker.exists(), "although the table has the epoch"
    marker.write_text("mine")
    sw.publish(view.store, "v", target)
    assert marker.read_text() == "mine"


@pytest.mark.more
@FORMATS
def test_a_new_table_in_a_root_or_another_table_is_refused(tmp_path: Path, format: str) -> None:
    view, target = view_in(tmp_path), target_in(tmp_path / "lake", format)
    write_marker(Location(str(tmp_path / "lake")), Marker("root", "other", "/lake", "", "0.1.0"))
    before = files(tmp_path / "lake")
    with pytest.raises(UsageError, match=r"is in the root of pipeline other .* publish to a directory outside"):
        sw.publish(view.store, "v", target)
    publication = DeclaredPublication("v", target)
    with pytest.raises(UsageError, match=r"is in the root of pipeline other"):
        check_publications(view.writer.root, [publication], SystemClock())
    written = [name for name in files(tmp_path / "lake") if "catalog.db" not in name]
    assert written == before
    write_marker(Location(str(tmp_path / "v")), Marker("table", "other", "/lake", "w", "0.1.0"))
    with pytest.raises(UsageError, match=r"is the published table of view w of /lake .* a directory of its own"):
        sw.publish(view.store, "v", target_in(tmp_path, format))


@pytest.mark.more
@pytest.mark.parametrize("place", ["root", "root/views", "."])
@FORMATS
def test_one_publication_by_hand_keeps_off_the_root(tmp_path: Path, format: str, place: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    view = view_in(tmp_path)
    kinds = {"delta": sw.Delta, "iceberg": sw.Iceberg, "parquet": sw.ParquetFiles}
    before = files(tmp_path)
    with pytest.raises(SettingsError, match=r"the root .* the published table of view v"):
        sw.publish(view.store, "v", kinds[format](str(tmp_path / "link" / place)))
    assert files(tmp_path) == before


def test_a_catalog_that_has_put_a_table_into_a_source_is_refused(tmp_path: Path) -> None:
    view, target = view_in(tmp_path), sw.Iceberg(str(tmp_path / "v"))
    sw.publish(view.store, "v", target)
    # The same name in the same catalog, declared with another place.
    moved = sw.Iceberg(str(tmp_path / "w"), table="slackwater.v")
    source = DeclaredPlace(PlaceKind.SOURCE, "s", Location(str(tmp_path / "v" / "data")))
    with pytest.raises(SettingsError, match=r"source s .* is below the published table of view v"):
        check_publications(view.writer.root, [DeclaredPublication("v", moved)], SystemClock(), [source])


class Followed:
    """A view that a loop publishes through the link `pub`, next to the source `raw`."""

    def __init__(self, directory: Path, format: str) -> None:
        self.directory, self.link = directory, directory / "pub"
        for name in ("raw", "lake", "other"):
            (directory / name).mkdir()
        self.lead_to("lake")
        self.view = view_in(directory)
        self.epoch = self.view.store.latest_epoch()
        publication = DeclaredPublication("v", target_in(self.link, format, interval_s=0))
        own = [place.checked() for place in places_of([publication])]
        source = DeclaredPlace(PlaceKind.SOURCE, "s", Location(str(directory / "raw")))
        self.reports = list[PublicationReport]()
        self.clock = ManualClock(SystemClock().now())
        root = self.view.writer.root
        watch = PlaceWatch(own, [source])
        self.loop = PublicationLoop(root, 0, publication, self.clock, self.reports.append, places=watch)

    def lead_to(self, name: str) -> None:
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(self.directory / name)

    def turn(self) -> PublicationReport:
        self.view.table.append(events(7))
        self.epoch = self.view.commit()
        self.loop.turn()
        return self.reports[-1]


@pytest.mark.more_after(1)
@FORMATS
def test_a_link_that_leads_into_a_source_during_a_run_pauses_the_publication(tmp_path: Path, format: str) -> None:
    followed = Followed(tmp_path, format)
    assert followed.turn().error is None
    lake = files(tmp_path / "lake")
    for name, reason in (("raw", "the source would read the files of the table as data"), ("other", "was at ")):
        followed.lead_to(name)
        error = followed.turn().error
        assert error is not None and reason in error
        assert files(tmp_path / name) == [], "nothing was written there"
        assert files(tmp_path / "lake") == lake
    followed.lead_to("lake")
    assert followed.turn().error is None
    assert contents(tmp_path / "lake", format)[0] == followed.epoch


@pytest.mark.more
def test_the_process_that_publishes_watches_the_places_of_the_run(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "parquet")
    view = followed.view
    target = target_in(followed.link, "parquet", interval_s=0)
    source = DeclaredPlace(PlaceKind.SOURCE, "s", Location(str(tmp_path / "raw")))
    publications = Publications(view.writer.root, [DeclaredPublication("v", target)], SystemClock(), [source])
    try:
        publications.notify(state(followed.epoch))
        eventually(lambda: publications.statuses[0].epoch == followed.epoch)
        late = [DeclaredPublication("v", sw.ParquetFiles(str(followed.link / "late"), interval_s=0))]
        followed.lead_to("raw")
        publications.add(late)
        view.table.append(events(9))
        last = view.commit()
        publications.notify(state(last))
        reason = "the source would read the files of the table as data"
        eventually(lambda: all(reason in (each.error or "") for each in publications.statuses))
        assert files(tmp_path / "raw") == []
        followed.lead_to("lake")
        eventually(lambda: publications.statuses[0].epoch == last)
    finally:
        publications.begin_end()
        publications.join()
