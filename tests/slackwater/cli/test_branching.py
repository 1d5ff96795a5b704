"""`slackwater branch`, `branches`, `diff`, `merge` and `drop-branch`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from slackwater.cli.app import app
from state.location import Location
from tests.slackwater.branching.branched_root import Writer
from tests.slackwater.reading.written_root import late, write_root


def called(*arguments: str, code: int = 0) -> Any:
    """The document that a command prints."""
    ended = CliRunner().invoke(app, [*arguments, "--json"])
    assert ended.exit_code == code, ended.output
    return json.loads(ended.stdout) if ended.stdout.startswith(("[", "{")) else ended.output


def test_a_branch_is_made_compared_merged_and_dropped(tmp_path: Path) -> None:
    written = write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    root, third = str(tmp_path / "root"), str(written.epochs[2])
    [made] = called("branch", root, "trial", "--epoch", third)
    assert made == {"branch": "trial", "epoch": third, "url": f"file://{root}/branches/trial"}
    [row] = called("branches", root)
    assert (row["branch"], row["epoch"], row["state"]) == ("trial", third, "ready")
    assert "exists, at epoch" in called("branch", root, "trial", code=2)

    found = called("diff", root, "trial", "late", code=1)
    assert (found["rows"], found["branch_rows"], found["only_in_root"], found["only_in_branch"]) == (3, 2, 1, 0)
    assert found["first_only_in_root"] == [{"day": "2026-02-03", "delay": 3}] and found["branch_epoch"] == third
    assert called("diff", root, f"{root}/branches/trial", "late", "--epoch", third)["only_in_root"] == 0
    assert "its branches are: trial" in called("diff", root, "other", "late", code=1)
    shown = CliRunner().invoke(app, ["diff", root, "trial", "late"])
    assert (
        shown.exit_code == 1 and "# late: first rows that only the root has\nday\tdelay\n2026-02-03\t3" in shown.stdout
    )

    called("drop-branch", root, "trial")
    assert called("branches", root) == []
    called("branch", root, "trial")
    writer = Writer(Location(f"{root}/branches/trial"))
    writer.add("more", late(1))
    writer.commit()
    [merged] = called("merge", root, "trial", "--view", "more")
    assert (merged["branch"], merged["views"]) == ("trial", ["more"])
    assert called("diff", root, "trial", "more")["rows"] == 1
