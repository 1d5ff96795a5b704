"""Avro and ORC files of every codec, large ones and damaged ones, into views over both."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from tests.actors.formats.written_files import AVRO_CODECS, ORC_CODECS, flights, write_avro, write_orc
from tests.real.event_pipeline import FAST

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

_LARGE_ROWS = 50_000


def _write(place: Path) -> int:
    """Writes the files of both sources, and returns the number of rows that each has."""
    (place / "avro").mkdir(parents=True)
    (place / "orc").mkdir()
    num_rows = 0
    for number in range(max(len(AVRO_CODECS), len(ORC_CODECS))):
        table = flights(100 + number)
        num_rows += table.num_rows
        avro = write_avro(table.to_pylist(), block_bytes=1_000, codec=AVRO_CODECS[number % len(AVRO_CODECS)])
        (place / "avro" / f"{number}").write_bytes(avro)
        (place / "orc" / f"{number}").write_bytes(write_orc(table, 40, ORC_CODECS[number % len(ORC_CODECS)]))
    large = flights(_LARGE_ROWS)
    contents = {"avro": write_avro(large.to_pylist()), "orc": write_orc(large, 5_000, "zstd")}
    for name, content in contents.items():
        (place / name / "large").write_bytes(content)
        (place / name / "empty").write_bytes(b"")
        (place / name / "cut").write_bytes(content[:100])
        (place / name / "garbage").write_bytes(b"garbage" * 100)
    return num_rows + _LARGE_ROWS


@pytest.mark.more
def test_both_formats_have_the_same_rows_and_their_damaged_files_are_told(tmp_path: Path) -> None:
    num_rows = _write(tmp_path)
    # Pieces that are smaller than the large files.
    settings = sw.Settings(fetch=sw.settings.FetchSettings(piece_bytes=200_000))
    pipeline = sw.Pipeline("formats", tmp_path / "root", settings=settings)
    for name in ("avro", "orc"):
        pipeline.source(name, tmp_path / name, format=name, discovery=FAST)
        pipeline.view(f"{name}_all", f"SELECT count(*) AS n, sum(delay) AS delay, max(at) AS last FROM {name}")
    pipeline.view("differ", "SELECT id, carrier, delay, at FROM avro EXCEPT SELECT id, carrier, delay, at FROM orc")
    with pipeline.start() as run:
        run.wait(until="caught_up")
    store = sw.open(tmp_path / "root")
    snapshot = store.snapshot()
    (avro,), (orc,) = (snapshot.view(f"{name}_all").to_arrow().to_pylist() for name in ("avro", "orc"))
    assert avro["n"] == num_rows and avro == orc
    assert snapshot.view("differ").to_arrow().num_rows == 0
    for name in ("avro", "orc"):
        states = {
            Path(row["path"]).name: (row["status"], row["error"] or "") for row in store.ledger.files(name).to_pylist()
        }
        bad = {path: reason for path, (state, reason) in states.items() if state == "quarantined"}
        assert sorted(bad) == ["cut", "empty", "garbage"]
        assert "the file is empty" in bad["empty"] and "not an" in bad["garbage"]
