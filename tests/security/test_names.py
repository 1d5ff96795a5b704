"""Names of objects and columns, and values, are data: they lead nowhere and are part of no command."""

from __future__ import annotations

import ast
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.formats.options import Csv
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.formats.text.csv import CsvReader
from actors.formats.text.json import JsonReader
from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server
from state.errors import SettingsError, SlackwaterError
from state.location import Location
from tests.actors.formats.written_files import open_written, rows_of, write_parquet
from tests.repository import ONE_PROCESS, trees

pytestmark = ONE_PROCESS
# The request of a worker process, which only the process that started it can send.
_REQUESTS = {
    "spark_bridge/ingest/dataset_frame.py",  # the driver sends shares of datasets to its own workers
    "slackwater/reading/query_worker.py",
    "slackwater/reading/snapshot_sql.py",
    "slackwater/verification/duckdb_engine.py",
    "slackwater/verification/duckdb_worker.py",
}
_SECRET = b"not for you"
_OUT = ["../secret", "a/../../secret", "..", "./../secret"]
_ESCAPED = ["%2e%2e/secret", "..%2fsecret", "%2e%2e%2fsecret"]
_HOSTILE_NAMES = [
    "'); DROP TABLE x; --.csv",
    '"; rm -rf ~ #.csv',
    "$(touch pwned).csv",
    "`touch pwned`.csv",
    "a b?#&=x%20.csv",
    "-rf.csv",
    "{env}.csv",
]
_HOSTILE_COLUMNS = ['a"; DROP TABLE x; --', "b`c", "d'); --", "e.f", "g[0]", "h i", "%s", "{j}", "ü\\n"]
_HOSTILE_VALUE = "'); DROP TABLE x; --\"`$(touch pwned)"


def _file(path: str, size: int) -> FileVersion:
    return FileVersion("s", path, b"", "", size, datetime(2013, 1, 1, tzinfo=UTC))


def _listed(location: Location) -> list[FileVersion]:
    return [
        FileVersion("s", path, b"", etag, size, modified)
        for page in ObjectStore(location).list_pages()
        for path, etag, size, modified in page.objects()
    ]


@pytest.mark.parametrize("path", [*_OUT, *_ESCAPED, "/secret"])
@pytest.mark.parametrize("place", ["s3", "local"])
def test_no_path_leaves_the_prefix(s3: S3Server, bucket: str, tmp_path: Path, place: str, path: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(_SECRET)
    s3.put(bucket, "secret", _SECRET)
    location = s3.location(bucket, "in") if place == "s3" else Location(str(tmp_path / "in"))
    with pytest.raises((SettingsError, ObjectVanished, UnreadableFile)):
        ObjectStore(location).open(_file(path, len(_SECRET))).stream()


def test_an_absolute_path_stays_below_the_source(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(_SECRET)
    (tmp_path / "in").mkdir()
    with pytest.raises(SlackwaterError):
        ObjectStore(Location(str(tmp_path / "in"))).open(_file(str(tmp_path / "secret"), len(_SECRET))).stream()


@pytest.mark.parametrize("path", ["to_secret", "to_outside/secret", "a/to_outside/secret", "to_a/b"])
def test_no_link_is_followed_also_one_that_took_the_place_of_a_listed_file(tmp_path: Path, path: str) -> None:
    source, outside = tmp_path / "in", tmp_path / "outside"
    (source / "a").mkdir(parents=True)
    outside.mkdir()
    (source / "a" / "b").write_bytes(_SECRET)
    (outside / "secret").write_bytes(_SECRET)
    (source / "to_a").symlink_to("a")
    (source / "to_secret").symlink_to(outside / "secret")
    (source / "to_outside").symlink_to(outside)
    (source / "a" / "to_outside").symlink_to(outside)
    store = ObjectStore(Location(str(source)))
    assert [file.path for file in _listed(Location(str(source)))] == ["a/b"]
    assert store.find("s", path) is None
    with pytest.raises(UnreadableFile, match="symbolic link"):
        store.open(_file(path, len(_SECRET))).stream()


def test_a_link_that_is_swapped_for_a_file_all_the_time_shows_nothing_of_its_target(tmp_path: Path) -> None:
    source, secret = tmp_path / "in", tmp_path / "secret"
    source.mkdir()
    secret.write_bytes(_SECRET)
    (source / "a").write_bytes(b"g" * len(_SECRET))
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            (source / ".link").symlink_to(secret)
            (source / ".link").replace(source / "a")
            (source / ".file").write_bytes(b"g" * len(_SECRET))
            (source / ".file").replace(source / "a")

    store = ObjectStore(Location(str(source)))
    swapper = threading.Thread(target=swap)
    swapper.start()
    read: set[bytes] = set()
    refused = 0
    try:
        while refused < 300 or not read:
            try:
                read.add(store.open(_file("a", len(_SECRET))).stream().read())
            except UnreadableFile:
                refused += 1
    finally:
        is_over.set()
        swapper.join()
    assert read == {b"g" * len(_SECRET)}


@pytest.mark.timeout(120)  # without the promise the reader waits for good
def test_a_pipe_in_the_place_of_a_file_keeps_no_reader_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    assert _listed(Location(str(tmp_path))) == []
    with pytest.raises(ObjectChanged):
        ObjectStore(Location(str(tmp_path))).open(_file("a", 10)).stream()


@pytest.mark.parametrize("place", ["s3", "local"])
def test_names_that_would_be_commands_elsewhere_are_read_as_any_other(
    s3: S3Server, bucket: str, tmp_path: Path, place: str
) -> None:
    location = s3.location(bucket) if place == "s3" else Location(str(tmp_path))
    for name in _HOSTILE_NAMES:
        s3.put(bucket, name, name.encode())
        (tmp_path / name).write_text(name)
    store = ObjectStore(location)
    files = _listed(location)
    assert {file.path for file in files} == set(_HOSTILE_NAMES)
    assert all(store.open(file).stream().read() == file.path.encode() for file in files)


def test_of_a_name_that_cannot_be_read_the_file_is_to_blame_and_not_the_network(s3: S3Server, bucket: str) -> None:
    s3.client().put_object(Bucket=bucket, Key="new\nline", Body=b"1")
    (file,) = _listed(s3.location(bucket))
    with pytest.raises(UnreadableFile, match="its name has control characters") as caught:
        ObjectStore(s3.location(bucket)).open(file).stream().read()
    assert "\n" not in str(caught.value)


def test_columns_and_values_that_would_be_sql_come_through_every_reader_unchanged(tmp_path: Path) -> None:
    table = pa.table({name: [_HOSTILE_VALUE, None] for name in _HOSTILE_COLUMNS})
    # Lance has no column with a dot or a backtick.
    shown = [name.replace(".", "_").replace("`", "_") for name in _HOSTILE_COLUMNS]
    file = open_written(tmp_path, write_parquet(table))
    assert ParquetReader().infer_schema(file).names == shown
    assert rows_of(list(ParquetReader().read(file, table.schema))) == table.to_pylist()
    # As text, by the writers of Python.
    import csv
    import io
    import json

    lines = io.StringIO()
    csv.writer(lines).writerows([_HOSTILE_COLUMNS, [_HOSTILE_VALUE] * len(_HOSTILE_COLUMNS)])
    file = open_written(tmp_path, lines.getvalue().encode())
    assert CsvReader(Csv()).infer_schema(file).names == shown
    assert rows_of(list(CsvReader(Csv()).read(file, table.schema))) == table.to_pylist()[:1]
    file = open_written(tmp_path, json.dumps(table.to_pylist()[0]).encode())
    assert JsonReader().infer_schema(file).names == shown
    assert rows_of(list(JsonReader().read(file, table.schema))) == table.to_pylist()[:1]


def _calls() -> list[tuple[Path, ast.Call]]:
    return [(path, node) for path, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_nothing_that_was_stored_is_unpickled_or_run() -> None:
    forbidden = {"eval", "exec", "system", "popen", "unsafe_load", "read_pickle"}
    found = []
    for path, call in _calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        shell = [keyword for keyword in call.keywords if keyword.arg in ("shell", "allow_pickle")]
        if name in forbidden or shell:
            found.append(f"{path}:{call.lineno} {name}")
    assert found == []
    for path, tree in trees().items():
        imported = {
            alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
        }
        unpickling = imported & {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
        assert not unpickling or str(path) in _REQUESTS, path
