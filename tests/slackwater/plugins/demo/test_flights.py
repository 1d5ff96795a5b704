"""The files of the demo hold the data set, whole."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from slackwater.plugins.demo.flights import FLIGHTS, FORMATS, DayFile, day_files


@pytest.mark.more
def test_every_flight_is_in_exactly_one_file_and_reads_back_in_every_format(tmp_path: Path) -> None:
    files: dict[str, DayFile] = {file.key: file for file in day_files()}
    assert len(files) == 365 and {file.format for file in files.values()} == set(FORMATS)
    assert sum(file.rows for file in files.values()) == FLIGHTS
    for name in FORMATS:
        file = next(file for file in files.values() if file.format == name)
        local = tmp_path / f"day.{name}"
        local.write_bytes(file.body)
        counted = duckdb.execute("SELECT count(*), count(carrier), min(month) FROM query_table(?)", [str(local)])
        assert counted.fetchall() == [(file.rows, file.rows, 1)]
