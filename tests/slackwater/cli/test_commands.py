"""`pause`, `resume`, `stop`, `throttle` and `retry` on roots without a run; tests/real has those with one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from state.location import Location
from tests.slackwater.cli import command
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.commands.bad_files import BAD, BadFiles, progress


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("throttle", "ROOT"), "give one or more of --files-per-second"),
        (("throttle", "ROOT", "off", "--files-per-second", "3"), "give one or more of --files-per-second"),
        (("throttle", "ROOT", "--bytes-per-second", "0"), "give a number above zero"),
        (("throttle", "ROOT", "on"), "off"),
        (("rescale", "ROOT", "0"), "from 1 to 256"),
        (("rescale", "ROOT", "257"), "from 1 to 256"),
        (("rescale", "ROOT", "8-2"), "the fewest and the most"),
        (("rescale", "ROOT", "many"), "'many' is not a valid number of fetch actors"),
        (("retry", "ROOT", "--view", "v", "--source", "s"), "give one or the other"),
        (("retry", "ROOT", "--view", "v", "--file", ""), "give one or the other"),
        (("vacuum", "ROOT", "--keep-epochs", "0"), "at least the last epoch"),
        (("vacuum", "ROOT", "--keep-s", "-1"), "not below zero"),
        (("pause",), "root"),
        (("stop", "s3://bucket/root", "-o", "secret_access_key=hunter2"), "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_arguments_that_do_not_fit_are_usage_errors(arguments: tuple[str, ...], said: str) -> None:
    ended = slackwater(*arguments)
    assert ended.code == 2
    assert said in ended.err and "hunter2" not in ended.err


@pytest.mark.parametrize("kind", ["pause", "resume", "stop"])
def test_when_nothing_runs_that_is_said_in_one_line(tmp_path: Path, kind: str) -> None:
    ended = slackwater(kind, str(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"error: nothing runs at {tmp_path}: there is nothing to {kind}\n"


@pytest.mark.parametrize("kind", ["reingest", "forget"])
def test_a_correction_needs_a_run_and_says_so(tmp_path: Path, kind: str) -> None:
    ended = slackwater(kind, str(tmp_path), "day=1/*.csv")
    assert (ended.code, ended.out) == (1, "")
    assert (
        ended.err.startswith(f"error: nothing runs at {tmp_path}: `{kind}` needs a run") and ended.err.count("\n") == 1
    )
    assert slackwater(kind, str(tmp_path)).code == 2, "all files at once have to be asked for"


def test_a_retry_without_a_run_says_how_many_and_which_there_is_not(tmp_path: Path) -> None:
    bad = BadFiles(Location(str(tmp_path)))
    bad.ended(BAD, progress("a"), progress("b"), progress("c", source="t"))
    ended = slackwater("retry", str(tmp_path), "--source", "s", "--json")
    assert (ended.code, json.loads(ended.out)) == (
        0,
        {"text": "2 files are in the queue again; the next run reads them", "files": 2},
    )
    assert (bad.paths("ledger"), bad.paths("queue")) == (["c"], ["a", "b"])
    ended = slackwater("retry", str(tmp_path), "--file", "nowhere.csv")
    assert ended.code == 1
    assert ended.err.startswith("error: no file nowhere.csv is quarantined") and ended.err.count("\n") == 1


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", ["raw/s/a.csv", "./raw/s/a.csv", "a.csv", "raw/../raw/s/a.csv"])
def test_a_file_of_the_present_directory_is_known_as_why_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "raw" / "s").mkdir(parents=True)
    (tmp_path / "raw" / "s" / "a.csv").touch()
    bad = BadFiles(Location(str(tmp_path / "root")), raw=Location(str(tmp_path / "raw")).url)
    bad.ended(BAD, progress("a.csv"), progress("b.csv"))
    monkeypatch.chdir(tmp_path)
    ended = slackwater("retry", "root", "--file", name, "--json")
    assert (ended.code, json.loads(ended.out)["files"]) == (0, 1)
    assert bad.paths("queue") == ["a.csv"]


@pytest.mark.more
def test_two_who_ask_at_once_while_nobody_runs_do_it_once(tmp_path: Path) -> None:
    bad = BadFiles(Location(str(tmp_path)))
    bad.ended(BAD, progress("a"))
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(lambda _: command.slackwater("retry", str(tmp_path)), range(2)))
    first, second = sorted(ended, key=lambda each: each.code)
    assert (first.code, second.code) in ((0, 0), (0, 75)), ended
    assert [each.out for each in ended].count("1 file is in the queue again; the next run reads it\n") == 1
    assert bad.paths("queue") == ["a"]
