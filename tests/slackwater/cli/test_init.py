"""`slackwater init`: a module that can be run, from existing files."""

from __future__ import annotations

import gzip
import io
import shlex
import socket
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.formats.options import Csv
from actors.objects.object_store import ObjectStore
from actors.reading.source_reader import SourceReader
from actors.rows import Offset
from actors.settings import FetchSettings
from slackwater.cli.target import load_pipeline
from slackwater.pipeline import Pipeline
from slackwater.planning.samples.proposal import propose
from slackwater.planning.samples.sample import sample_of
from slackwater.planning.shown_schema import listed_files
from state.errors import StorageUnavailableError
from state.location import Location
from state.visible import visible
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import Ended

_ORDERS = "id,zip,qty\n1,01234,5\n2,99999,7\n"


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str, answers: str = "") -> Ended:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answers.encode())))
    return slackwater("init", *arguments)


def made(file: Path) -> Pipeline:
    return load_pipeline(f"{file}:pipeline")


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def rows(pipeline: Pipeline, name: str) -> list[dict[str, object]]:
    """The rows of a source, read as a run reads them."""
    source = pipeline.sources[name]
    reader = SourceReader(source, source.schema, FetchSettings())
    found: list[dict[str, object]] = []
    for page in ObjectStore(source.location).list_pages():
        for batch in page.table.to_batches():
            for file in listed_files(name, source.path_filter.taken(batch)):
                piece, is_last = reader.open(file).next_piece(source.schema, Offset())
                assert is_last and not piece.bad
                found += piece.table.to_pylist()
    return found


def test_a_directory_becomes_a_module_with_format_types_pattern_and_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, raw = tmp_path / "my shop", tmp_path / "raw orders"
    place.mkdir()
    monkeypatch.chdir(place)
    write(raw / "day=2026-11-12" / "a.csv", _ORDERS)
    write(raw / "_temporary" / "b.csv", "x\n")
    ended = init(monkeypatch, str(raw))
    assert (ended.code, ended.err) == (0, "")
    assert "source raw_orders: 1 file of csv, 4 columns" in ended.out
    assert "slackwater run app.py:pipeline --dry-run" in ended.out
    pipeline = made(place / "app.py")
    assert pipeline.name == "my_shop" and pipeline.root.path == place / "root"
    source = pipeline.sources["raw_orders"]
    assert (source.location.path, source.format, source.pattern) == (raw, Csv(), "**/*.csv")
    assert source.schema == pa.schema(
        [("id", pa.int64()), ("zip", pa.string()), ("qty", pa.int64()), ("day", pa.date32())]
    )
    assert [row["zip"] for row in rows(pipeline, "raw_orders")] == ["01234", "99999"]
    assert pipeline.views["first_view"].query == "SELECT count(*) AS n FROM raw_orders"
    text = (place / "app.py").read_text()
    assert f"slackwater sql '{place / 'root'}'" in text
    assert 'add key="id"' in text


@pytest.mark.parametrize(
    ("content", "options", "row"),
    [
        ("id;name\n1;a\n2;b\n", Csv(delimiter=";"), {"id": 1, "name": "a"}),
        ("id\tname\n1\ta\n2\tb\n", Csv(delimiter="\t"), {"id": 1, "name": "a"}),
        ("id|n\n1|2\n3|4\n", Csv(delimiter="|"), {"id": 1, "n": 2}),
        ("Report\nof May\nid,n\n1,2\n3,4\n5,6\n", Csv(skip_rows=2), {"id": 1, "n": 2}),
        ("# by X\nid,n\n1,2\n3,4\n5,6\n", Csv(comment="#"), {"id": 1, "n": 2}),
        (
            'id;price\n1;"1.234,50"\n2;"7,25"\n',
            Csv(delimiter=";", decimal=",", thousands="."),
            {"id": 1, "price": 1234.5},
        ),
        ("id,n\n1,\xe4\n".encode("cp1252"), Csv(encoding="cp1252"), {"id": 1, "n": "ä"}),
        ("id,n\n1,a\n".encode("utf-16"), Csv(encoding="utf-16"), {"id": 1, "n": "a"}),
        (gzip.compress(b"id;n\n1;a\n", mtime=0), Csv(delimiter=";"), {"id": 1, "n": "a"}),
        ('id,t\n1,"say \\"hi\\" now"\n2,"x"\n', Csv(escape="\\"), {"id": 1, "t": 'say "hi" now'}),
        ("only\nx\ny\n", Csv(), {"only": "x"}),
    ],
)
def test_options_of_csv_are_proposed_and_read_the_file(
    content: str | bytes, options: Csv, row: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "raw" / "a.csv", content)
    ended = init(monkeypatch, "raw")
    assert ended.code == 0, ended.err
    pipeline = made(tmp_path / "app.py")
    assert pipeline.sources["raw"].format == options
    assert rows(pipeline, "raw")[0] == row


def test_each_kind_of_file_is_a_source_and_other_files_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for day in range(3):
        write(tmp_path / "in" / "orders" / f"2026-11-0{day + 1}" / "a.csv", _ORDERS)
    write(tmp_path / "in" / "clicks" / "a.json", '{"at": "2026-11-12T10:00:00Z", "tags": {}}\n')
    write(tmp_path / "in" / "group" / "a.parquet", b"")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "in" / "group" / "b.parquet")
    write(tmp_path / "in" / "scans" / "a.pdf", "%PDF-1.7\n")
    ended = init(monkeypatch, "in")
    assert ended.code == 0, ended.err
    sources = made(tmp_path / "app.py").sources
    assert {name: (each.format.name, each.pattern) for name, each in sources.items()} == {
        "orders": ("csv", "orders/**/*.csv"),
        "clicks": ("json", "clicks/**/*.json"),
        "files_group": ("parquet", "group/**/*.parquet"),
    }
    assert "left out: scans/a.pdf: it is a PDF document: leave it out with pattern=..." in ended.out


def test_directories_with_the_same_columns_are_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in" / "north" / "a.csv", _ORDERS)
    write(tmp_path / "in" / "south" / "a.csv", "id,zip,qty\n3,x,1.5\n")
    assert init(monkeypatch, "in").code == 0
    (source,) = made(tmp_path / "app.py").sources.values()
    assert source.schema is not None
    assert (source.pattern, source.schema.field("qty").type) == ("**/*.csv", pa.float64())


def test_most_files_decide_the_format_and_the_others_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        write(tmp_path / "in" / f"a{number}.csv", "id;n\n1;2\n3;4\n")
    for number in range(6):
        write(tmp_path / "in" / f"b{number}.csv", "id,n\n1,2\n3,4\n")
    write(tmp_path / "in" / "c.csv", b"\x89PNG\r\n\x1a\n\x00")
    ended = init(monkeypatch, "in")
    assert ended.code == 0, ended.err
    (source,) = made(tmp_path / "app.py").sources.values()
    assert source.format == Csv() and source.schema == pa.schema([("id", pa.int64()), ("n", pa.int64())])
    assert 'not read: a0.csv: it looks like sw.Csv(delimiter=";"), and most files look like' in ended.out
    assert "not read: c.csv: it is a PNG image" in ended.out, "the opened files are spread over all names"
    assert "10 files; 4 of them were opened as a trial, and 8 rows read" in (tmp_path / "app.py").read_text()


def test_files_with_other_columns_make_a_lenient_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, column in (("a", "qty"), ("b", "qty"), ("c", "quantity")):
        write(tmp_path / "in" / f"{name}.csv", f"store,{column}\nx,1\n")
    ended = init(monkeypatch, "in")
    (source,) = made(tmp_path / "app.py").sources.values()
    assert source.evolution == "lenient" and source.schema is not None
    assert source.schema.names == ["store", "qty", "quantity"]
    assert 'some files lack quantity, qty: evolution="lenient" reads null for them' in ended.out


def test_a_name_or_a_reason_of_a_file_is_never_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory, evil = '"""+exit(7)[x]', '\n"""\nraise SystemExit(7)\n'
    write(tmp_path / "in" / directory / 'a".csv', f'"{evil}",b\n1,2\n3,"x\n')
    write(tmp_path / "in" / directory / "a\n.csv", _ORDERS)
    ended = init(monkeypatch, "in")
    assert ended.code == 0, ended.err
    (source,) = made(tmp_path / "app.py").sources.values()
    assert source.path_filter.accepts(f'{directory}/a".csv')
    assert "left out: " in ended.out and "\\n.csv" in ended.out


def test_options_decide_and_texts_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "2026" / "a.json", '{"a": 1}\n')
    query = "SELECT 'it''s \"\"\"' AS a, count(*) AS n FROM files_2026"
    options = ("--name", "p", "--root", "s3://lake/p", "--query", query, "--file", str(tmp_path / "p.py"))
    ended = init(monkeypatch, "2026", *options)
    assert ended.code == 0, ended.err
    pipeline = made(tmp_path / "p.py")
    assert pipeline.views["first_view"].query == query
    assert (pipeline.name, pipeline.root.url) == ("p", "s3://lake/p")


def test_the_url_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "raw" / "a.json", '{"a": 1}\n')
    assert init(monkeypatch, answers="raw\n").code == 0
    assert [*made(tmp_path / "app.py").sources] == ["raw"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("raw", "--file", "there.py"), "there.py exists, and stays as it is: name another file with --file"),
        (("raw", "--file", "app.txt"), "app.txt cannot be a module: name a file *.py in a directory that exists"),
        (("raw", "--file", "no/app.py"), "no/app.py cannot be a module"),
        (("raw", "--name", "a b"), "pipeline 'a b' is not a valid name"),
        (("ftp://x",), "FTP"),
        (("empty",), "it has no files yet; give a directory or URL with files"),
        ((), "give the directory or URL of the files: slackwater init DIRECTORY"),
        (("raw/a.csv",), "raw/a.csv is a file: give the directory that contains it"),
        (("nowhere",), "nowhere"),
        (("scans",), "a.png: it is a PNG image"),
    ],
)
def test_a_wrong_argument_writes_nothing(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "there.py", "mine")
    write(tmp_path / "raw" / "a.csv", _ORDERS)
    write(tmp_path / "scans" / "a.png", b"\x89PNG\r\n\x1a\n\x00")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.iterdir())
    ended = init(monkeypatch, *arguments)
    assert ended.code == (1 if "nowhere" in arguments else 2) and said in ended.err and ended.err.count("\n") == 1, (
        ended.err
    )
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.py").read_text() == "mine"


@pytest.mark.parametrize("name", ['f"""\nraise SystemExit(7)\n"""', "back\\x", "a b{name}"])
def test_the_name_of_the_module_is_never_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "raw" / "a.csv", _ORDERS)
    ended = init(monkeypatch, "raw", "--file", f"{name}.py")
    assert ended.code == 0, ended.err
    assert [*made(tmp_path / f"{name}.py").sources] == ["raw"]
    assert f"slackwater run {visible(shlex.quote(f'{name}.py:pipeline'))} --dry-run" in ended.out


def test_invisible_characters_are_written_as_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in" / "a\u202eb" / "a.csv", "id,a\u2028b\n1,2\n")
    query = "SELECT '\u202e\udc85' AS a, count(*) AS n FROM a_b"
    ended = init(monkeypatch, "in", "--query", query)
    assert ended.code == 0, ended.err
    assert not {"\u202e", "\u2028"} & set((tmp_path / "app.py").read_text())
    pipeline = made(tmp_path / "app.py")
    assert pipeline.views["first_view"].query == query
    (source,) = pipeline.sources.values()
    assert source.path_filter.accepts("a\u202eb/a.csv") and source.schema is not None
    assert source.schema.names == ["id", "a\u2028b"]


def test_credentials_in_a_url_are_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "lake" / "a.csv", _ORDERS)
    local = propose(Location(str(tmp_path / "lake")))
    monkeypatch.setattr("slackwater.planning.samples.proposal.propose", lambda location, settings: local)
    urls = "s3://user:hidden@lake/raw?sig=hidden", "--root", "s3://user:hidden@lake/p?sig=hidden"
    ended = init(monkeypatch, *urls)
    assert ended.code == 0, ended.err
    assert "hidden" not in (tmp_path / "app.py").read_text() + ended.out
    pipeline = made(tmp_path / "app.py")
    assert (pipeline.root.url, pipeline.sources["lake"].location.url) == ("s3://lake/p", "s3://lake/raw")


def test_a_root_among_the_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "raw" / "a.csv", _ORDERS)
    monkeypatch.chdir(tmp_path / "raw")
    ended = init(monkeypatch, ".")
    assert ended.code == 2 and "would read the files of the root as data" in ended.err and "--root" in ended.err
    assert not Path("app.py").exists()
    assert init(monkeypatch, ".", "--root", "../root").code == 0


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_table_is_left_out(below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in" / "plain" / "a.csv", _ORDERS)
    table = tmp_path / "in" / "table"
    write(table / "deeper" / "a.csv", _ORDERS)
    write(table / "_delta_log" / f"{0:020}.json", "{}\n")
    ended = init(monkeypatch, "in")
    assert ended.code == 0, ended.err
    assert "left out: table: it is a Delta table: read " in ended.out
    assert [*made(tmp_path / "app.py").sources] == ["plain"]
    ended = init(monkeypatch, f"in/table{below}", "--file", "table.py")
    assert ended.code == 2 and "a Delta table" in ended.err
    assert not (tmp_path / "table.py").exists()


def test_many_columns_are_written_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"c{number}" for number in range(10_000)]
    write(tmp_path / "raw" / "a.csv", f"{','.join(names)}\n{','.join('1' for _ in names)}\n")
    began = time.process_time()
    assert init(monkeypatch, "raw").code == 0
    assert time.process_time() - began < 40  # a table of all columns for each column took minutes
    source = made(tmp_path / "app.py").sources["raw"]
    assert source.schema is not None and source.schema.names == names


def test_programs_beside_the_files_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    write(place / "a.csv", _ORDERS)
    write(place / "load.py", "import csv, sys\nprint(1, 2)\n")
    write(place / "README.md", "# Files, and more\n")
    monkeypatch.chdir(place)
    ended = init(monkeypatch, ".", "--root", "../root")
    assert ended.code == 0, ended.err
    assert [source.pattern for source in made(place / "app.py").sources.values()] == ["**/*.csv"]
    assert "left out: load.py: .py is the suffix of a program" in ended.out


def test_an_encoding_that_is_not_known_is_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "raw" / "a.csv", b"id,n\n1,\x81\xe4\n")
    ended = init(monkeypatch, "raw")
    assert ended.code != 0 and "a.csv: its text is neither UTF-8 nor cp1252: declare the encoding" in ended.err
    assert not (tmp_path / "app.py").exists()


def test_a_file_that_is_being_written_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", _ORDERS)
    store = ObjectStore(Location(str(tmp_path)))
    [file] = listed_files("s", next(store.list_pages()).table.to_batches()[0])
    write(tmp_path / "a.csv", _ORDERS * 2)
    assert sample_of(store.open(file)) == "a program is writing to it: try again when it is finished"


def test_a_store_that_never_answers_ends_the_first_request() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        options = {
            "endpoint": f"http://127.0.0.1:{server.getsockname()[1]}",
            "read_timeout": "0.2s",
            "allow_http": "true",
            "access_key_id": "a",
            "secret_access_key": "b",
            "region": "us-east-1",
        }
        with pytest.raises(StorageUnavailableError, match="it did not answer in time"):
            propose(Location("s3://bucket/raw/files", options))
        server.setblocking(False)
        connections = 0
        with pytest.raises(BlockingIOError):
            while True:
                server.accept()[0].close()
                connections += 1
    assert 1 <= connections <= 5, "the directories above are looked at only in a store that answers"
