"""After every correction a view equals Spark's answer over the present files."""

from __future__ import annotations

import hashlib
import random
import time
from pathlib import Path
from threading import Event
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession

from spark_bridge.changes.corrections import CorrectedRows
from spark_bridge.datasets import dataset_upkeep
from spark_bridge.datasets.dataset_writer import DatasetWriter
from spark_bridge.ingest import dataset_frame
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import ViewError
from state.tables import fingerprint
from state.tables.stored_rows import stored_rows_name, stored_rows_path
from tests.cases import few
from tests.spark_bridge.corrected_view import CorrectedView
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_queries import DEFINITIONS


def test_an_append_view_whose_rows_do_not_name_their_file_is_refused_with_the_next_step(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    definition = ViewDefinition("v", "SELECT k, i FROM t")
    before = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    made = before.run({"t": random_rows(random.Random(1), 3)})
    known = {view.name: view for view in made.created}
    replacing = Materializer(local_spark, before.root, materialized=["t"], replacing=["t"])
    replacing.open(before.views, 1, frozenset("t"))
    with pytest.raises(ViewError, match=r"view 'v' does not know the file of a row.*replace=True"):
        replacing.declare([definition], {"t": SCHEMA}, known)
    both = ViewDefinition("v", "SELECT k FROM t UNION ALL SELECT k FROM u")
    with pytest.raises(ViewError, match=r"view 'v' reads t, .* and u, whose rows are not stored"):
        replacing.declare([both], {"t": SCHEMA, "u": SCHEMA}, {})
    replacing.close()


def test_a_correction_restarts_a_backfill(local_spark: SparkSession, tmp_path: Path) -> None:
    early = ViewDefinition("early", "SELECT k, count(*) AS n FROM t GROUP BY k")
    added = ViewDefinition("added", "SELECT k, sum(i) AS s FROM t GROUP BY k")
    view = CorrectedView(local_spark, tmp_path, early)
    view.correct({("t", "a"): random_rows(random.Random(2), 9)}, {})
    view.materializer.declare([early, added], {"t": SCHEMA}, {"early": view.catalog["early"]})
    view.correct({}, {})
    assert view.views["added.next"].pinned_epoch == 1
    view.correct({}, {("t", "a"): None})
    assert "added.next" not in view.views, "its first dataset is dropped"
    view.correct({}, {})
    assert view.views["added.next"].pinned_epoch == 3, "its history has the correction"


@pytest.mark.more
def test_the_old_rows_of_a_file_are_read_without_a_scan(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fragment has the rows of several files, some of which have left."""
    chance, scanned, scan = random.Random(11), [], dataset_frame._scan
    query = "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k"
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query))
    for number in range(20):
        view.correct({("t", f"{number:02}"): random_rows(chance, 9)}, {})
        view.materializer.tidy()
    fragments = view.open(view.root, view.views[stored_rows_name("t")]).get_fragments()
    assert max(each.count_rows() for each in fragments) > 9, "a fragment has the rows of several files"

    def noting(dataset: Any, schema: Any, wanted: Any, of: Any) -> Any:
        scanned.append([dataset.get_fragment(each).count_rows() for each in of.fragments])
        return scan(dataset, schema, wanted, of)

    for number in (1, 4, 2, 9, 3):
        scanned.clear()
        new = random_rows(chance, 4)
        with monkeypatch.context() as patched:
            patched.setattr(dataset_frame, "_scan", noting)
            view.correct({}, {("t", f"{number:02}"): new})
        assert [sum(each) for each in scanned] == [4], "the rows that come, which have fragments of their own"
        view.check()
    view.materializer.close()


@pytest.mark.more
def test_rows_that_were_tidied_before_a_correction_stay(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_upkeep, "_TIDY_EVERY_COMMITS", 1)
    monkeypatch.setattr(dataset_upkeep, "_FRAGMENT_FACTOR", 2)
    chance = random.Random(12)
    query = "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k"
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query))
    for number in range(6):
        view.correct({("t", f"{number}"): random_rows(chance, 9)}, {})
        for _ in range(9):
            view.materializer.tidy()
        view.correct({}, {("t", f"{number // 2}"): random_rows(chance, 4)})
        view.check()
    view.materializer.close()


@pytest.mark.more
def test_a_group_is_computed_again_of_rows_whose_commit_goes_on(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, asked = random.Random(3), Event()
    query = "SELECT k, max(i) AS m FROM (SELECT k, i FROM t UNION ALL SELECT k, i FROM u) GROUP BY k"
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query), ("t", "u"))
    view.correct({(source, "a"): random_rows(chance, 40) for source in "tu"}, {})
    changed, all_rows = DatasetWriter._changed, CorrectedRows.all

    def late(table: DatasetWriter, *arguments: Any) -> lance.LanceDataset:
        if table.location.url.endswith(stored_rows_path("u", 1)):
            assert asked.wait(60)
            time.sleep(0.5)
        return changed(table, *arguments)

    def asking(rows: CorrectedRows, *arguments: Any) -> EpochRows:
        asked.set()
        return all_rows(rows, *arguments)

    monkeypatch.setattr(DatasetWriter, "_changed", late)
    monkeypatch.setattr(CorrectedRows, "all", asking)
    view.correct({("u", "b"): random_rows(chance, 5)}, {("t", "a"): None})
    view.check()
    view.materializer.close()


class _HalfAlike:
    """A hash whose first 64 bits are always the same, as those of two among a thousand million paths can be."""

    def __init__(self, text: bytes, *, digest_size: int) -> None:
        self._digest = hashlib.blake2b(text, digest_size=digest_size).digest()

    def digest(self) -> bytes:
        return bytes(8) + self._digest[8:]


def test_a_correction_leaves_the_rows_of_a_file_whose_fingerprint_begins_alike(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "blake2b", _HalfAlike)
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", "SELECT k, i FROM t"))
    view.correct({("t", path): random_rows(random.Random(path), 5) for path in "ab"}, {})
    view.check()
    view.correct({}, {("t", "a"): None})
    view.check()


SHORT = ("counts",)


@pytest.mark.parametrize("definition", few(DEFINITIONS, *SHORT), ids=lambda definition: definition.name)
def test_view_is_sparks_answer_after_files_were_replaced_and_forgotten(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(f"corrections of {definition.name}")
    view = CorrectedView(local_spark, tmp_path, definition)
    view.correct(
        {("t", path): random_rows(chance, chance.choice([1, 9, 30])) for path in ("a", "b/it's", "c", "d")}, {}
    )
    view.check()
    for _ in range(3):
        new = {("t", f"new-{view.epoch}"): random_rows(chance, 5)}
        view.correct(
            new,
            {
                ("t", chance.choice("acd")): random_rows(chance, chance.choice([0, 1, 12])),
                ("t", chance.choice(["b/it's", "never there", f"new-{view.epoch}"])): None,
            },
        )
        view.check()
        assert view.stored_files("t") == {
            path: rows.num_rows for (_, path), rows in view.files.items() if rows.num_rows
        }
    view.correct({}, dict.fromkeys(view.files))
    view.check()
    view.correct({}, {("t", "a"): random_rows(chance, 20)})
    view.check()
