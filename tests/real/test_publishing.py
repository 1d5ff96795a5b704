"""Published tables of whole runs: the views are Spark's, with their columns without nulls and their nested types."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.plugins.publish.every_type import bag_of
from tests.slackwater.plugins.publish.published import contents
from tests.slackwater.plugins.publish.second_reader import second_contents

FORMATS = ("delta", "iceberg", "parquet")
_APP = """
import slackwater as sw
from tests.real.event_pipeline import FAST, ONE_FETCHER

GROUPS = (
    "SELECT user, count(*) AS n, struct(count(*) AS n, max(amount) AS most) AS both, array(count(*), NULL) AS counts "
    "FROM orders GROUP BY user"
)
pipeline = sw.Pipeline("orders", "root", settings=ONE_FETCHER)
pipeline.source(
    "orders", "in", format="csv", schema="user string, amount double", discovery=FAST, on_change="replace",
    materialize=True,
)
files = sw.ParquetFiles("parquet/v", partition_by="user", interval_s=0)
tables = [sw.Delta("delta/v"), sw.Iceberg("iceberg/v", interval_s=0), files]
pipeline.view("by_user", GROUPS, publish=tables)
"""


def write(directory: Path, name: str, *rows: str) -> None:
    (directory / "in").mkdir(exist_ok=True)
    (directory / "in" / name).write_text("\n".join(("user,amount", *rows)) + "\n")


@pytest.mark.more
@pytest.mark.ray
@pytest.mark.usefixtures("session")
def test_tables_of_a_run_equal_its_views_and_a_run_that_leaves_one_behind_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(_APP)

    def require_equal() -> pa.Table:
        store = sw.open(tmp_path / "root")
        for format in FORMATS:
            epoch, rows = contents(tmp_path / format, format)
            second_epoch, second = second_contents(tmp_path / format, format)
            view = store.snapshot(epoch).view("by_user").to_arrow()
            assert bag_of(rows, view.schema) == bag_of(second, view.schema) == bag_of(view, view.schema)
            assert epoch == second_epoch == store.latest_epoch()
        return view

    write(tmp_path, "a.csv", "ann,1", "bob,2", ",3", "ann,")
    write(tmp_path, "b.csv", "cid,4")
    ended = slackwater("run", "app.py:pipeline", "--until", "caught_up")
    assert ended.code == 0, ended.err
    view = require_equal()
    assert not view.schema.field("n").nullable and view.num_rows == 4

    write(tmp_path, "b.csv", "dan,5", "dan,6")  # the group of cid leaves
    write(tmp_path, "c.csv", "ann,7")
    ended = slackwater("run", "app.py:pipeline", "--until", "caught_up")
    assert ended.code == 0, ended.err
    assert sorted(filter(None, require_equal()["user"].to_pylist())) == ["ann", "bob", "dan"]

    write(tmp_path, "d.csv", "__HIVE_DEFAULT_PARTITION__,8")
    ended = slackwater("run", "app.py:pipeline", "--until", "caught_up")
    assert ended.code == 3, ended.err
    last = ended.err.strip().splitlines()[-1]
    table = re.escape(f"parquet:{tmp_path}/parquet/v")
    assert re.match(rf"error: view by_user: {table} is \d+ epochs? behind \(failed\): ", last)
    assert "column 'user' of the partitions has '__HIVE_DEFAULT_PARTITION__', which readers take for null" in last
    assert contents(tmp_path / "delta", "delta")[0] == sw.open(tmp_path / "root").latest_epoch()
