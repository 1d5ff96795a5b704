"""Publications in `slackwater status`: their lag is that of now, and a failed one has its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.cli.display.status import print_status
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole
from slackwater.status.run_status import PublicationStatus, RunStatus
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.plugins.ui.living_root import running
from tests.slackwater.reading.failed_views import OVERFLOW, fail_view
from tests.slackwater.reading.written_root import WrittenRoot, write_root

REFUSED = "delta:/pub/late was written by another program (WRITE by delta-rs): nothing was published"


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def told(written: WrittenRoot) -> RunStatus:
    """By a run with a table that is up to date, one that is behind, and one that failed."""
    at = written.epochs
    return RunStatus(
        phase="running",
        epoch=at[-1],
        publications=(
            PublicationStatus("by_carrier", "iceberg:/pub/by_carrier", at[-1], commits=4, rows=12),
            PublicationStatus("by_carrier", "parquet:/pub/files", at[0], behind_epochs=1, behind_s=0.5, commits=1),
            PublicationStatus(
                "late", "delta:/pub/late", None, behind_epochs=4, behind_s=75.0, failures=2, error=REFUSED
            ),
        ),
    )


def test_the_status_has_each_table_with_its_lag_and_the_reason_of_a_failure(written: WrittenRoot) -> None:
    behind = len(written.epochs) - 1
    with running(written.root, told(written)):
        lines = slackwater("status", written.root.url).out.splitlines()
        document = json.loads(slackwater("status", written.root.url, "--json").out)
    start = lines.index("# publications")
    rows = [
        dict(zip(lines[start + 1].split("\t"), line.split("\t"), strict=True)) for line in lines[start + 2 : start + 5]
    ]
    assert [(row["table"], row["behind_epochs"]) for row in rows] == [
        ("iceberg:/pub/by_carrier", "0"),
        ("parquet:/pub/files", str(behind)),
        ("delta:/pub/late", "4"),
    ]
    assert f"view late (4 epochs, 1 min 15 s behind): {REFUSED}; it is tried again" in lines
    assert not any("/pub/files" in line for line in lines[start + 5 :]), "to be behind is no fault while a run lasts"
    assert [each["behind_epochs"] for each in document["publications"]] == [0, behind, 4]


def test_after_the_run_the_status_says_what_is_left_to_do(
    written: WrittenRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(written.root, told(written)):
        pass
    output = Output()
    output.console = SafeConsole(force_terminal=True, width=130, color_system=None)
    print_status(sw.open(written.root.url), output)
    lines = capsys.readouterr().out.splitlines()
    [behind] = [line for line in lines if line.startswith("view by_carrier (")]
    assert behind.endswith("parquet:/pub/files; the next run goes on")
    assert any(
        line.startswith("view late (4 epochs, 1 min 15 s behind): delta:/pub/late was written by") for line in lines
    )


def test_a_root_without_publications_says_nothing_of_them(written: WrittenRoot) -> None:
    with running(written.root, RunStatus()):
        assert "publications" not in slackwater("status", written.root.url).out


def test_publish_of_a_failed_view_exits_with_3_and_names_the_reason(tmp_path: Path, written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[-1])
    target = f"parquet:{tmp_path / 'pub'}"
    ended = slackwater("publish", written.root.url, "late", "--to", target, "--json")
    reason = f"view late has failed, and its table lacks the same rows: {OVERFLOW}"
    assert (ended.code, ended.err) == (3, f"error: {reason}\n")
    document = json.loads(ended.out)
    assert (document["rows"], document["incomplete"]) == (
        sw.open(written.root.url).snapshot().view("late").count_rows(),
        reason,
    )
    assert slackwater("publish", written.root.url, "late", "--to", target).code == 3, "also without a new row"
    assert slackwater("publish", written.root.url, "by_carrier", "--to", f"parquet:{tmp_path / 'other'}").code == 0


def test_publish_of_a_view_whose_new_definition_is_in_backfill_exits_with_3(
    tmp_path: Path, written: WrittenRoot
) -> None:
    fail_view(written.root, "late", written.epochs[-1], error=None, begun="late.next")
    ended = slackwater("publish", written.root.url, "late", "--to", f"parquet:{tmp_path / 'pub'}")
    assert (ended.code, ended.err) == (3, "error: the backfill of view late is not complete\n")
