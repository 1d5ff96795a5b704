"""What a pipeline may declare for its files after the commit, and what is refused with the next step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.plugins.after_commit.declaration import DeclaredAfter
from state.errors import SettingsError


def pipeline(tmp_path: Path, url: str = "s3://raw/in", **options: Any) -> sw.Pipeline:
    made = sw.Pipeline("p", root=tmp_path / "root")
    made.source("s", url, format="csv", **options)
    made.view("v", "SELECT * FROM s")
    return made


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, 1e11, 10**400, "1 day", True, None])
def test_the_time_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(SettingsError, match="give a number of seconds, 0 or more"):
        sw.Delete(keep_s=seconds)


@pytest.mark.parametrize("tags", [{}, {"": "x"}, {"a": 1}, {"a": "x" * 257}, {str(n): "" for n in range(11)}, ["a"]])
def test_tags_are_those_that_s3_takes(tags: Any) -> None:
    with pytest.raises(SettingsError, match="tag"):
        sw.Tag(tags)


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("s3://raw/in", {"after": "delete"}, r"after='delete' is not an action: give sw.Delete"),
        ("https://raw.example.com/in", {"after": sw.Delete(keep_s=0)}, "files of a web server cannot be changed"),
        ("/data/in", {"after": sw.Tag({"a": "b"})}, "is for s3://, and /data/in has no tags"),
        (
            "s3://raw/in",
            {"after": sw.Delete(keep_s=0), "on_change": "replace", "materialize": True},
            "the deletion of a file removes its rows from the views",
        ),
    ],
)
def test_a_source_refuses_what_cannot_be_done(tmp_path: Path, url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        pipeline(tmp_path, url, **options)


@pytest.mark.parametrize("other", ["s3://raw", "s3://raw/in", "s3://raw/in/day=1"])
@pytest.mark.parametrize("after", [sw.Delete(keep_s=0), sw.Tag({"read": "yes"})])
def test_files_that_another_source_reads_are_not_changed(tmp_path: Path, other: str, after: Any) -> None:
    """Also not tagged: a rule of the bucket may delete tagged objects."""
    made = pipeline(tmp_path, after=after)
    made.source("other", other, format="csv")
    with pytest.raises(SettingsError, match=r"after=... of source s would change files that source other reads"):
        made._definition()


@pytest.mark.parametrize(
    ("url", "pattern", "target", "is_refused"),
    [
        ("s3://raw/in", "**", "s3://raw/in/archive", True),
        ("s3://raw/in", "**", "s3://raw/in", True),
        ("s3://raw/in", "**", "s3://raw", True),
        ("s3://raw/in", "**", "s3://raw/inside", False),
        ("s3://raw", "incoming/**", "s3://raw/archive", True),
        ("s3://raw", "*.csv", "s3://raw/archive", True),
        ("s3://raw", "**/*.csv", "s3://archive", False),
    ],
)
def test_moved_files_are_not_read_again(tmp_path: Path, url: str, pattern: str, target: str, is_refused: bool) -> None:
    made = pipeline(tmp_path, url, pattern=pattern, after=sw.Move(target))
    if is_refused:
        with pytest.raises(
            SettingsError, match=r"the target of sw.Move of source s .* moved files would be read again"
        ):
            made._definition()
    else:
        made._definition()


def test_no_file_is_moved_into_the_root(tmp_path: Path) -> None:
    made = pipeline(tmp_path, after=sw.Move(str(tmp_path / "root" / "archive")))
    with pytest.raises(SettingsError, match="moved files would lie among the files of the root"):
        made._definition()


def test_a_move_takes_the_access_of_its_source(tmp_path: Path) -> None:
    access = {"access_key_id": "a", "secret_access_key": "b"}
    made = pipeline(tmp_path, storage_options=access, after=sw.Move("s3://archive"))
    declared = made._after["s"]
    assert isinstance(declared, DeclaredAfter)
    action = declared.action
    assert isinstance(action, sw.Move)
    assert dict(action.location.storage_options) == access
    assert "secret_access_key" not in repr(action)
