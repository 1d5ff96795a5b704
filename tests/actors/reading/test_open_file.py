"""The edge to a reader: its unexpected errors are errors of the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import ObjectVanished, ReaderFailed
from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from actors.reading.open_file import OpenFile
from actors.reading.source_reader import SourceReader
from actors.rows import Offset
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from state.location import Location
from tests.actors.formats.failing_reader import FailingFormat

SCHEMA = pa.schema([("number", pa.int64())])
ERRORS = ("IndexError", "TypeError", "ValueError", "OSError", "RecursionError", "AssertionError")


def opened(directory: Path, text: str) -> OpenFile:
    (directory / "a").write_text(text)
    source = SourceDefinition(name="s", location=Location(str(directory)), format=FailingFormat())
    (page,) = ObjectStore(source.location).list_pages()
    ((path, etag, size, modified),) = page.objects()
    return SourceReader(source, SCHEMA, FetchSettings()).open(FileVersion("s", path, b"", etag, size, modified))


@pytest.mark.parametrize("error", ERRORS)
def test_an_unexpected_error_of_a_reader_is_one_of_the_file_behind_the_rows_before_it(
    tmp_path: Path, error: str
) -> None:
    file = opened(tmp_path, f"1\n2\n{error}\n4\n")
    pieces = [file.next_piece(SCHEMA, Offset()) for _ in range(2)]
    assert [(rows.table["number"].to_pylist(), last) for rows, last in pieces] == [([1], False), ([2], False)]
    with pytest.raises(ReaderFailed, match=f"the reader of failing failed with {error}: a bug; the log") as raised:
        file.next_piece(SCHEMA, Offset(2))
    assert type(raised.value.__cause__).__name__ == error, "the log needs the traceback"


@pytest.mark.parametrize("error", ERRORS)
def test_an_unexpected_error_of_inference_is_one_of_the_file(tmp_path: Path, error: str) -> None:
    with pytest.raises(ReaderFailed, match=error):
        opened(tmp_path, f"schema {error}\n").infer_schema()


def test_a_lack_of_memory_is_not_the_fault_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        opened(tmp_path, "MemoryError\n").next_piece(SCHEMA, Offset())
    with pytest.raises(MemoryError):
        opened(tmp_path, "schema MemoryError\n").infer_schema()


def test_an_error_of_the_store_passes_unchanged(tmp_path: Path) -> None:
    file = opened(tmp_path, "1\n")
    (tmp_path / "a").unlink()
    with pytest.raises(ObjectVanished):
        file.next_piece(SCHEMA, Offset())
