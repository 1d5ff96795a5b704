"""A dataset that names the files of another one is written like any other, and the other stays as it is."""

from __future__ import annotations

from pathlib import Path
from random import Random

import lance
import pyarrow as pa
import pytest

from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.datasets.view_table import ViewTable
from state.lance.lance_access import create_dataset, lance_options, open_dataset
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from tests.cases import few

ROWS = 12_000


def rows_of(values: dict[int, int]) -> pa.Table:
    keys = pa.array([f"{key:06}" for key in values])
    return pa.table({"k": pa.array(list(values)), "n": pa.array(list(values.values())), KEY_COLUMN: keys})


def content(dataset: lance.LanceDataset) -> dict[int, int]:
    rows = dataset.to_table(columns=["k", "n"]).to_pylist()
    found = {row["k"]: row["n"] for row in rows}
    assert len(found) == len(rows), "each key is there once"
    return found


@pytest.mark.parametrize("where", few(["local", "s3"], "local"))
def test_a_clone_and_its_origin_are_changed_apart(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = Location(str(tmp_path / "a root%"))
    if where == "s3":
        server: S3Server = request.getfixturevalue("s3")
        root = server.location(request.getfixturevalue("bucket"), "root")
    origin, clone, chance = root.child("v.lance"), root.child("branches/b/v.lance"), Random(5)
    values = dict.fromkeys(range(ROWS), 0)
    create_dataset(origin, rows_of(values), fragment_rows=ROWS // 3)
    tables = [ViewTable.open(origin, 1)]
    tables[0].tidy()  # makes the index
    tables[0].delete(pa.array(["000007", "000008"]))
    del values[7], values[8]
    version = open_dataset(origin).version
    open_dataset(origin, version).shallow_clone(clone.lance_uri, version, lance_options(origin))
    tables.append(ViewTable.open(clone, version))
    held = [dict(values), dict(values)]
    for turn in range(40):
        for table, expected in zip(tables, held, strict=True):
            changed = {chance.randrange(ROWS + 2_000): turn * 10 + number for number in range(50)}
            table.upsert(rows_of(changed))
            expected |= changed
            gone = chance.sample(sorted(expected), 5)
            table.delete(pa.array([f"{key:06}" for key in gone]))
            for key in gone:
                del expected[key]
            table.tidy()
    for table, expected in zip(tables, held, strict=True):
        table.update_where({"n": "n + 1"}, "k < 100")
        expected |= {key: value + 1 for key, value in expected.items() if key < 100}
        table.add_columns(pa.schema([("more", pa.string())]))
        table.append(rows_of({99_999: 1}).append_column("more", pa.array(["x"])).select(table.schema.names))
        expected[99_999] = 1
    for place, table, expected in zip((origin, clone), tables, held, strict=True):
        assert content(table.snapshot()) == expected
        found = table.rows_of(pa.array([f"{key:06}" for key in range(200)]), ["k"])
        assert found.num_rows == sum(key < 200 for key in expected), "by the index"
        latest = open_dataset(place)
        old = {int(each["version"]) for each in latest.versions()} - {int(latest.version), int(version)}
        latest.cleanup_old_versions(versions=sorted(old), error_if_tagged_old_versions=False)
    for place, expected in zip((origin, clone), held, strict=True):
        assert content(open_dataset(place)) == expected
    assert content(open_dataset(origin, version)) == values
