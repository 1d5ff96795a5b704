"""Signs of tables: the logs of each format are seen, and names that only look alike are not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from state.places.table_signs import sign_of, table_signs

_UUID = "3f2a1b4c-0d5e-4f6a-8b7c-9d0e1f2a3b4c"
SIGNS = {
    "_slackwater.json": "a root or a published table of Slackwater",
    "_delta_log/00000000000000000000.json": "a Delta table",
    "_delta_log/00000000000000000010.checkpoint.parquet": "a Delta table",
    "_delta_log/00000000000000000010.checkpoint.0000000001.0000000002.parquet": "a Delta table",
    "_delta_log/_last_checkpoint": "a Delta table",
    "metadata/v1.metadata.json": "an Iceberg table",
    "metadata/v12.gz.metadata.json": "an Iceberg table",
    f"metadata/00003-{_UUID}.metadata.json": "an Iceberg table",
    f"metadata/00003-{_UUID}.gz.metadata.json": "an Iceberg table",
    ".hoodie/hoodie.properties": "a Hudi table",
    ".hoodie_partition_metadata": "a Hudi table",
    "_versions/1.manifest": "a Lance dataset",
    "_versions/18446744073709551614.manifest": "a Lance dataset",
    "state.lance/_versions/18446744073709551614.manifest": "a root of Slackwater",
}
OTHERS = [
    "",
    "a.parquet",
    "metadata/a.parquet",
    "metadata/paper.metadata.json",
    "metadata/v1.metadata.json/a.csv",
    "photos/x.metadata.json",
    "my_delta_log/00000000000000000000.json",
    "_delta_log/notes.txt",
    "_delta_logs/00000000000000000000.json",
    "my_slackwater.json",
    "_slackwater.json.bak",
    "_slackwater.json/a.csv",
    "x.hoodie",
    "my.hoodie/hoodie.properties",
    "_versions/notes.txt",
    "my_versions/1.manifest",
]


@pytest.mark.parametrize("directory", ["", "t", "a/b c/é"])
@pytest.mark.parametrize("path", SIGNS)
def test_a_log_of_a_table_is_a_sign_of_its_directory(directory: str, path: str) -> None:
    whole = f"{directory}/{path}" if directory else path
    found = sign_of(whole)
    assert found is not None
    assert (found.directory, found.path, found.kind) == (directory, whole, SIGNS[path])
    assert list(table_signs(pa.array(["0.csv", whole, "z.csv"]))) == [found]


@pytest.mark.parametrize("path", OTHERS)
def test_a_name_that_looks_alike_is_no_sign(path: str) -> None:
    assert sign_of(path) is None
    assert list(table_signs(pa.array([path, f"t/{path}"]))) == []


def test_each_directory_has_one_sign_in_any_slice_of_names() -> None:
    log = [f"t{table}/_delta_log/{number:020}.json" for table in range(3) for number in range(4)]
    names = pa.array(["a.csv", *log, "z.csv"])
    assert [each.directory for each in table_signs(names)] == ["t0", "t1", "t2"]
    assert [each.directory for each in table_signs(names.slice(5))] == ["t1", "t2"]
    assert [each.directory for each in table_signs(names.slice(0, 6))] == ["t0", "t1"]
    assert list(table_signs(names.slice(13))) == list(table_signs(names.slice(0, 0))) == []


def test_names_that_are_no_text_together_are_no_sign() -> None:
    """The search looks at all names of a page at once: a sign must be in one name."""
    assert list(table_signs(pa.array(["a/_delta_log", "/00000000000000000000.json"]))) == []
