"""`slackwater sql` and `slackwater watch`, in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import started
from tests.slackwater.reading.written_root import RootWriter, WrittenRoot, by_carrier, write_root

QUERY = "SELECT carrier, n FROM by_carrier WHERE n > 1 ORDER BY n"


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def test_a_query_is_answered_as_a_table_and_as_json_at_any_epoch(written: WrittenRoot) -> None:
    root, epochs = written.root.url, written.epochs
    table = slackwater("sql", root, QUERY)
    assert (table.code, table.err) == (0, "")
    assert table.out.splitlines() == [f"# epoch {epochs[-1]}", "carrier\tn", "o'hare|1\t101", "AA\t903"]
    earlier = slackwater("sql", root, QUERY, "--epoch", str(epochs[2]), "--json")
    assert (earlier.code, json.loads(earlier.out)) == (0, [{"carrier": "AA", "n": 3}])
    files = slackwater("sql", root, "SELECT status, count(*) AS n FROM files GROUP BY ALL ORDER BY ALL", "--json")
    assert json.loads(files.out)[0] == {"status": "done", "n": 2}


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("query", "said", "limit"),
    [
        ("SELECT * FROM nothing", "the views at epoch .* are: by_carrier, late", ()),
        ("SELECT m FROM by_carrier", '"m" not found', ()),
        ("DROP TABLE by_carrier", "one SELECT: DROP is refused", ()),
        ("SELECT 1 AS a, 2 AS a", "two columns of the answer are called 'a'", ()),
        (
            "SELECT count(*) FROM range(100_000_000_000) a, range(1_000) b",
            "took more than 0.5 s",
            ("--timeout", "0.5"),
        ),
        ("SELECT * FROM range(100_000_000)", "needs more than 107.4 MB of memory", ("--max-memory-gib", "0.1")),
    ],
)
def test_a_query_that_cannot_be_answered_is_a_usage_error_of_one_line(
    written: WrittenRoot, query: str, said: str, limit: tuple[str, ...]
) -> None:
    ended = slackwater("sql", written.root.url, query, *limit)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(ended.err)


def test_what_is_not_there_is_a_failure(written: WrittenRoot, tmp_path: Path) -> None:
    assert slackwater("sql", str(tmp_path), QUERY).code == 1
    assert slackwater("sql", written.root.url, QUERY, "--epoch", "1").code == 1
    missing = slackwater("watch", written.root.url, "nothing")
    assert (missing.code, missing.err.count("\n")) == (1, 1) and "by_carrier, late" in missing.err


class Watching:
    """`slackwater watch` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process: subprocess.Popen[str] = started("watch", *arguments, "--poll-s", "0.05")
        assert self.process.stdout is not None
        self._out = self.process.stdout

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def line(self) -> str:
        """Waits for the next line, and returns it."""
        return self._out.readline().rstrip("\n")

    def interrupt(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


def writer_of(root: Path) -> RootWriter:
    return RootWriter(Location(str(root)), Location("/nowhere"))


def put(writer: RootWriter, rows: dict[str | None, int]) -> int:
    writer.view("v", by_carrier(rows))
    writer.commit()
    return writer.records[-1].epoch


def test_a_view_is_followed_in_lines_until_it_is_interrupted(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "root")
    first = put(writer, {"AA": 1, "U\tA": 2})
    with Watching(str(tmp_path / "root"), "v") as watching:
        lines = [watching.line() for _ in range(3)]
        assert lines == ["epoch\tchange\tcarrier\tn", f"{first}\trow\tAA\t1", f"{first}\trow\tU\\tA\t2"]
        second = put(writer, {"AA": 5, "U\tA": 2})
        assert watching.line() == f"{second}\tremoved\tAA\t1"
        assert watching.line() == f"{second}\trow\tAA\t5"
        assert watching.interrupt() == (0, "")


@pytest.mark.more
def test_a_view_is_followed_as_json_from_an_epoch_on(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "root")
    first = put(writer, {"AA": 1})
    second = put(writer, {None: 2})
    with Watching(str(tmp_path / "root"), "v", "--since", str(first), "--json") as watching:
        change: dict[str, Any] = json.loads(watching.line())
        assert change["epoch"] == str(second)
        assert change["removed"] == [{"carrier": "AA", "n": 1}]
        assert change["rows"] == [{"carrier": None, "n": 2}]
        third = put(writer, {None: 3})
        assert json.loads(watching.line())["epoch"] == str(third)
        assert watching.interrupt() == (0, "")
