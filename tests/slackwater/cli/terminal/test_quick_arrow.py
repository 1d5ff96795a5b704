"""Commands that read a root do not load pandas, and it still works where it is wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from state.location import Location
from tests.slackwater.reading.written_root import write_root

_PROGRAM = """
import sys
from slackwater.cli.options import open_store

store = open_store(sys.argv[1], {})
files, epoch = store.ledger.files(), store.snapshot().view("by_carrier").to_arrow()
assert "pandas" not in sys.modules, "loaded to read"
assert len(files.to_pandas()) == files.num_rows, "loaded when asked for"
import pandas, pyarrow
assert pyarrow.Table.from_pandas(pandas.DataFrame({"a": [1]})).num_rows == 1
"""


@pytest.mark.more
def test_a_command_reads_without_pandas_and_converts_with_it(tmp_path: Path) -> None:
    written = write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, written.root.url], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
