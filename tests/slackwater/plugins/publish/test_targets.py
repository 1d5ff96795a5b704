"""A target that is not valid is refused with the next step, before a root is opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.plugins.publish.targets import target_of
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.plugins.publish.growing_view import GrowingView, events
from tests.slackwater.plugins.publish.published import require_equal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("csv:/tmp/x", "is not a valid target: give FORMAT:URI with one of the formats delta, iceberg"),
        ("s3://bucket/x", "is not a valid target"),
        ("delta:", "is not a valid target"),
        ("delta:ftp://host/x", "FTP servers are not read"),
        ("delta:s3://", "needs a bucket"),
        ("iceberg:https://host/x", "a web server is only read"),
    ],
)
def test_a_bad_target_is_named(text: str, message: str) -> None:
    with pytest.raises(sw.errors.UsageError, match=message):
        target_of(text)


def test_options_of_another_format_are_refused() -> None:
    with pytest.raises(sw.errors.UsageError, match="belong to Iceberg"):
        target_of("delta:/tmp/x", {"type": "rest"})
    with pytest.raises(sw.errors.SettingsError, match="'flat' is not a valid name"):
        sw.Iceberg("/tmp/x", table="flat")


def test_targets_show_no_secret() -> None:
    assert "hidden" not in repr(sw.Delta("s3://bucket/x", {"secret_access_key": "hidden"}))
    assert "hidden" not in repr(sw.Iceberg("s3://bucket/x", {"token": "hidden"}))


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_the_command_publishes_and_catches_up(tmp_path: Path, format: str) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    first = view.create(events(1, 2))
    view.table.append(events(3))
    last = view.commit()
    arguments = ("publish", str(tmp_path / "root"), "v", "--to", f"{format}:{tmp_path / 'v'}")
    ended = slackwater(*arguments, "--epoch", str(first))
    assert (ended.code, ended.err) == (0, "")
    header, row = ended.out.splitlines()
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True))["rows"] == "2"
    assert require_equal(view.store, tmp_path, format) == first
    assert slackwater(*arguments).code == 0
    assert require_equal(view.store, tmp_path, format) == last


@pytest.mark.more
def test_the_command_names_what_is_wrong(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(events(1))
    root, to = str(tmp_path / "root"), f"delta:{tmp_path / 'v'}"
    unknown = slackwater("publish", root, "w", "--to", to)
    assert unknown.code == 1 and "there is no view 'w'" in unknown.err and "the views are: v" in unknown.err
    assert slackwater("publish", str(tmp_path / "nowhere"), "v", "--to", to).code == 1
    secret = slackwater("publish", root, "v", "--to", f"iceberg:{tmp_path / 'v'}", "--catalog", "token=hidden")
    assert secret.code == 2 and "PYICEBERG_CATALOG__SLACKWATER__TOKEN" in secret.err and "hidden" not in secret.err
    no_catalog = slackwater("publish", root, "v", "--to", "iceberg:s3://bucket/v")
    assert no_catalog.code == 2 and "iceberg:s3://bucket/v needs a catalog" in no_catalog.err
    (tmp_path / "file").write_text("")
    in_the_way = slackwater("publish", root, "v", "--to", f"delta:{tmp_path / 'file' / 'v'}")
    assert in_the_way.code == 1 and str(tmp_path / "file") in in_the_way.err and "unexpected" not in in_the_way.err
    assert not (tmp_path / "v").exists()


@pytest.mark.more_after(1)
@pytest.mark.parametrize(("format", "library"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, format: str, library: str) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(events(1))
    code = f"import sys; sys.modules[{library!r}] = None; from slackwater.cli.app import main; main(sys.argv[1:])"
    arguments = ("publish", str(tmp_path / "root"), "v", "--to", f"{format}:{tmp_path / 'v'}")
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert ended.returncode == 2
    assert f"needs {library}" in ended.stderr and f"pip install 'slackwater[{format}]'" in ended.stderr
