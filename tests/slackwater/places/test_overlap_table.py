"""Overlapping places are refused when a pipeline is declared, in both directions and by every spelling."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.overlap_table import EXCEPTIONS, documented_rows, require_apart
from state.errors import SettingsError
from state.location import Location
from tests.repository import REPOSITORY
from tests.state.places.mounts import bind_mount

DELETE = sw.Delete(keep_s=0)
MOVE = sw.Move


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """`room/lake/raw`, with a link `room/link` to the lake."""
    (tmp_path / "room" / "lake" / "raw").mkdir(parents=True)
    (tmp_path / "room" / "proj").mkdir()
    (tmp_path / "room" / "link").symlink_to(tmp_path / "room" / "lake")
    return tmp_path / "room" / "lake"


def pipeline(root: str, source: str, *, other: str | None = None, publish: Any = (), **options: Any) -> sw.Pipeline:
    made = sw.Pipeline("p", root=root)
    made.source("s", source, format="csv", schema="n int", **options)
    if other is not None:
        made.source("o", other, format="csv", schema="n int")
    made.view("v", "SELECT * FROM s", publish=publish)
    return made


CASES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "root below the source": ("{L}/own", "{L}", {}, "the root .* is below source s"),
    "root below the source, Delete": ("{L}/own", "{L}", {"after": DELETE}, "the root .* is below source s"),
    "root below the source by ..": ("{R}/proj/../lake/own", "{L}", {"after": DELETE}, r"\.\./lake/own .* is below"),
    "root below the source by a link": ("{R}/link/own", "{L}", {"after": DELETE}, "the root .* is below source s"),
    "source below the root": ("{L}", "{L}/raw", {"after": DELETE}, "the root .* is above source s"),
    "source is the root": ("{L}", "{L}/", {}, "the root .* is the same as source s"),
    "the same source by ..": (
        "{R}/r",
        "{L}/raw",
        {"other": "{R}/proj/../lake/raw", "after": DELETE},
        "source s .* is the same as source o",
    ),
    "the same source by a link": (
        "{R}/r",
        "{L}/raw",
        {"other": "{R}/link/raw", "after": DELETE},
        "source s .* is the same as source o",
    ),
    "table above the root": (
        "{L}/own",
        "{L}/raw",
        {"publish": [sw.Delta, "{L}"]},
        "the root .* is below the published",
    ),
    "table is the root": (
        "{L}/own",
        "{L}/raw",
        {"publish": [sw.Delta, "{L}/own"]},
        "the root .* is the same as the pub",
    ),
    "table in the root": (
        "{L}/own",
        "{L}/raw",
        {"publish": [sw.Delta, "{L}/own/views"]},
        "the root .* is above the pub",
    ),
    "iceberg in the root": (
        "{L}/own",
        "{L}/raw",
        {"publish": [sw.Iceberg, "{L}/own/t"]},
        "the root .* is above the pub",
    ),
    "archive is the table": (
        "{L}/own",
        "{L}/raw",
        {"after": [MOVE, "{L}/pub"], "publish": [sw.Delta, "{L}/pub"]},
        "is the same as the target",
    ),
    "archive below the table": (
        "{L}/own",
        "{L}/raw",
        {"after": [MOVE, "{L}/pub/old"], "publish": [sw.Delta, "{L}/pub"]},
        "is above the target",
    ),
    "table above a source": (
        "{R}/own",
        "{L}/raw",
        {"publish": [sw.ParquetFiles, "{L}"]},
        "source s .* is below the published table",
    ),
    "table below a source whose pattern leaves it out": (
        "{R}/own",
        "{L}/raw",
        {"pattern": "in/*.csv", "publish": [sw.Delta, "{L}/raw/out"]},
        "source s .* is above the pub",
    ),
    "table below a source by ..": (
        "{R}/own",
        "{L}/raw",
        {"publish": [sw.Delta, "{R}/proj/../lake/raw/out"]},
        "source s .* is above the published",
    ),
    "archive is the source by ..": (
        "{R}/own",
        "{L}/raw",
        {"after": [MOVE, "{R}/proj/../lake/raw"]},
        "is the same as the ta",
    ),
    "archive is the source by a link": (
        "{R}/own",
        "{L}/raw",
        {"after": [MOVE, "{R}/link/raw"]},
        "is the same as the target",
    ),
    "archive below a source whose pattern leaves it out": (
        "{R}/own",
        "{L}/raw",
        {"pattern": "in/**", "after": [MOVE, "{L}/raw/done"]},
        "source s .* is above the target",
    ),
    "archive above the source": ("{R}/own", "{L}/raw", {"after": [MOVE, "{L}"]}, "source s .* is below the target"),
    "archive in the root": (
        "{R}/own",
        "{L}/raw",
        {"after": [MOVE, "{R}/own/old"]},
        "the root .* is above the target",
    ),
    "table is a branch's own root above": (
        "{R}/own/branches/b",
        "{L}/raw",
        {"publish": [sw.Delta, "{R}/own/t"]},
        "the root of the branch .* is above the pub",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_overlapping_places_are_refused_by_both_names_the_reason_and_the_next_step(lake: Path, name: str) -> None:
    root, source, options, message = CASES[name]

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            kind, text = value
            return kind(filled(text))
        return value.format(L=lake, R=lake.parent) if isinstance(value, str) else value

    made = pipeline(filled(root), filled(source), **{key: filled(value) for key, value in options.items()})
    with pytest.raises(SettingsError, match=message) as refused:
        made.explain()
    text = str(refused.value)
    assert text.count(str(lake.parent)) >= 2, "both places"
    assert "; choose another place for " in text or "; give each source a place of its own" in text
    with pytest.raises(SettingsError, match=message):
        made.dry_run()
    with pytest.raises(SettingsError, match=message):
        made.start()
    assert sorted(path.name for path in lake.rglob("*")) == ["raw"], "nothing was written"


def test_two_tables_need_two_directories(lake: Path) -> None:
    made = pipeline(str(lake.parent / "root"), str(lake / "raw"), publish=sw.ParquetFiles(str(lake / "pub")))
    made.view("late", "SELECT n FROM s", publish=sw.ParquetFiles(str(lake / "pub" / "late")))
    with pytest.raises(SettingsError, match=r"published table of view v .* is above the published table of view late"):
        made._definition()


def test_a_table_with_several_formats_needs_several_directories(lake: Path) -> None:
    tables = [sw.Delta(str(lake / "t")), sw.Iceberg(str(lake / "t"))]
    with pytest.raises(
        SettingsError, match=r"published table of view v .* is the same as the published table of view v"
    ):
        pipeline(str(lake.parent / "root"), str(lake / "raw"), publish=tables)._definition()


def test_two_names_in_one_catalog_are_refused(lake: Path) -> None:
    catalog = {"type": "rest", "uri": "http://localhost:1"}
    made = pipeline(str(lake / "root"), str(lake / "raw"), publish=sw.Iceberg("s3://lake/a/t", catalog))
    made.view("w", "SELECT n FROM s", publish=sw.Iceberg("s3://lake/b/t", catalog))
    with pytest.raises(SettingsError, match=r"'slackwater\.t' in its catalog, which is also the table of view v"):
        made._definition()


@pytest.mark.parametrize(
    ("source", "is_refused"), [("s3://lake/raw", False), ("s3://lake", True), ("s3://other", False)]
)
def test_a_source_may_be_below_the_warehouse_of_a_catalog_and_not_above(
    lake: Path, source: str, is_refused: bool
) -> None:
    catalog = {"type": "rest", "uri": "http://localhost:1", "warehouse": "s3a://lake"}
    made = pipeline(str(lake / "root"), source, publish=sw.Iceberg("db.t", catalog))
    if is_refused:
        with pytest.raises(SettingsError, match=r"the catalog makes its tables below the warehouse"):
            made._definition()
    else:
        made._definition()


@pytest.mark.parametrize(
    ("one", "other", "after", "is_refused"),
    [
        (("raw", "**"), ("raw", "**"), None, True),
        (("raw", "*.csv"), ("raw", "*.csv"), None, True),
        (("raw", "*.csv"), ("raw", "*.json"), None, False),
        (("raw", "**"), ("raw", "*.csv"), None, False),
        (("raw", "**"), ("raw/day=1", "**"), None, True),
        (("raw", "*.csv"), ("raw/day=1", "*.csv"), None, False),
        (("raw", "day=2/**"), ("raw/day=1", "day=2/**"), None, False),
        (("raw", "*.csv"), ("raw", "*.json"), DELETE, True),
        (("raw", "*.csv"), ("raw/day=1", "*.csv"), DELETE, True),
        (("raw", "*.csv"), ("raw2", "*.csv"), DELETE, False),
        (("raw", "*.csv"), ("raw", "*.json"), sw.Tag({"read": "yes"}), True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_turned", [False, True])
def test_two_sources_share_a_place_if_neither_changes_files_and_their_patterns_differ(
    tmp_path: Path, one: tuple[str, str], other: tuple[str, str], after: Any, is_refused: bool, is_turned: bool
) -> None:
    made = sw.Pipeline("p", root=tmp_path / "root")
    first, second = (other, one) if is_turned else (one, other)
    for name, (path, pattern) in zip("ab", (first, second), strict=True):
        options = {"after": after} if name == "a" and after else {}
        made.source(name, f"s3://lake/{path}", format="csv", schema="n int", pattern=pattern, **options)
    made.view("v", "SELECT n FROM a UNION ALL SELECT n FROM b")
    if is_refused:
        with pytest.raises(SettingsError, match=r"; give each source a place of its own, or a pattern that differs"):
            made._definition()
    else:
        made._definition()


def test_a_bind_mount_is_the_place_that_it_shows(lake: Path) -> None:
    made = pipeline(str(lake.parent / "root"), str(lake / "raw"), after=sw.Move(str(lake.parent / "archive")))
    made._definition()
    with bind_mount(lake / "raw", lake.parent / "archive"):
        with pytest.raises(SettingsError, match=r"source s .* is the same as the target of sw.Move"):
            made._definition()
        table = pipeline(str(lake / "root"), str(lake / "raw"), publish=sw.Delta(str(lake.parent / "archive" / "t")))
        with pytest.raises(SettingsError, match=r"source s .* is above the published table"):
            table._definition()
    made._definition()


def test_a_link_that_is_made_after_the_declaration_is_found_by_the_start(lake: Path) -> None:
    (lake.parent / "pub").symlink_to(lake.parent / "elsewhere")
    made = pipeline(str(lake.parent / "root"), str(lake / "raw"), publish=sw.Delta(str(lake.parent / "pub" / "t")))
    made._definition()
    (lake.parent / "elsewhere").symlink_to(lake / "raw")
    with pytest.raises(SettingsError, match=r"source s .* is above the published table of view v"):
        made.start()
    assert not (lake.parent / "root").exists(), "nothing was written"


def test_an_endpoint_of_the_environment_is_the_endpoint_of_an_option(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sw.Pipeline("p", root="s3://lake/root", storage_options={"endpoint": "http://127.0.0.1:9000"})
    made.source("s", "s3://lake", format="csv", schema="n int", storage_options={"region": "eu-west-1"})
    made.view("v", "SELECT * FROM s")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    made._definition()  # the source is at AWS
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://LOCALHOST:9000/")
    with pytest.raises(SettingsError, match=r"the root \(s3://lake/root\) is below source s \(s3://lake\)"):
        made._definition()


def test_static_tables_and_branches_are_parts_of_their_root(lake: Path) -> None:
    made = pipeline(str(lake / "root" / "branches" / "trial"), str(lake / "raw"))
    made.table("rates", [{"a": 1}])
    made._definition()
    (lake / "root" / "branches" / "trial").mkdir(parents=True)
    (lake / "root" / "branches" / "trial" / "tables").symlink_to(lake.parent)
    with pytest.raises(SettingsError, match=r"it belongs below the root, and a link or a mount leads elsewhere"):
        made._definition()


def test_the_order_of_a_pair_does_not_count(lake: Path) -> None:
    kinds = [kind for kind in PlaceKind if kind is not PlaceKind.WAREHOUSE]
    for one, other in itertools.combinations_with_replacement(kinds, 2):
        places = [DeclaredPlace(one, "a", Location(str(lake))), DeclaredPlace(other, "b", Location(str(lake)))]
        for order in (places, places[::-1]):
            with pytest.raises(SettingsError):
                require_apart(order)
            with pytest.raises(SettingsError):
                require_apart(order, new=order[:1])


def test_only_pairs_with_a_new_place_are_checked(lake: Path) -> None:
    places = [DeclaredPlace(PlaceKind.SOURCE, name, Location(str(lake))) for name in "ab"]
    new = DeclaredPlace(PlaceKind.TABLE, "v", Location(str(lake.parent / "t")))
    require_apart([*places, new], new=[new])
    with pytest.raises(SettingsError, match=r"source a .* is the same as source b"):
        require_apart([*places, new])


def test_the_page_has_the_table_of_the_code() -> None:
    page = (REPOSITORY / "docs" / "guide" / "places.md").read_text(encoding="utf-8")
    rows = [f"| {one} | {other} | {condition} |" for one, other, condition in documented_rows()]
    table = "\n".join(rows)
    assert table in page, f"docs/guide/places.md lacks this table:\n{table}"
    assert len(rows) == len(EXCEPTIONS) + 1
