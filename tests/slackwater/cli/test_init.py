"""`slackwater init`: a module that can be run, from answers or options."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from slackwater.cli.target import load_pipeline
from slackwater.pipeline import Pipeline
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import Ended


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str, answers: str = "") -> Ended:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answers.encode())))
    return slackwater("init", *arguments)


def made(file: Path) -> Pipeline:
    return load_pipeline(f"{file}:pipeline")


def test_five_answers_make_a_module_with_a_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "my shop"
    place.mkdir()
    monkeypatch.chdir(place)
    ended = init(monkeypatch, answers="\n/data/raw orders/\ncsv\n\n\n")
    assert (ended.code, ended.err) == (0, "")
    assert "app.py is written" in ended.out and "slackwater run app.py:pipeline --dry-run" in ended.out
    pipeline = made(place / "app.py")
    assert pipeline.name == "my_shop" and pipeline.root.path == place / "root"
    source = pipeline.sources["raw_orders"]
    assert (source.location.path, source.format.name) == (Path("/data/raw orders"), "csv")
    assert pipeline.views["first_view"].query == "SELECT count(*) AS n FROM raw_orders"
    text = (place / "app.py").read_text()
    assert "'" + str(place / "root") + "'" in text, "a command with the quoted root stands in its first lines"


def test_options_answer_without_a_question_and_texts_are_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT 'it''s \"\"\"' AS a, count(*) AS n FROM files_2026"
    options = ("--name", "p", "--url", "s3://raw/2026/", "--format", "json", "--root", "s3://lake/p", "--query", query)
    ended = init(monkeypatch, str(tmp_path / "p.py"), *options)
    assert ended.code == 0, ended.err
    pipeline = made(tmp_path / "p.py")
    assert pipeline.views["first_view"].query == query
    assert pipeline.sources["files_2026"].location.url == "s3://raw/2026"


@pytest.mark.parametrize(
    ("arguments", "answers", "said"),
    [
        (("there.py",), "", "there.py exists, and stays as it is: name another file"),
        (("app.txt",), "", "app.txt cannot be a module: name a file *.py in a directory that exists"),
        (("no/app.py",), "", "no/app.py cannot be a module"),
        (("--name", "a b"), "", "pipeline 'a b' is not a valid name"),
        (("--name", "a", "--url", "raw", "--format", "xml"), "", "source raw: "),
        (("--name", "a", "--url", "raw"), "parquet\nftp://x\n", "ftp"),
    ],
)
def test_a_wrong_answer_writes_nothing(
    arguments: tuple[str, ...], answers: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.py").write_text("mine")
    ended = init(monkeypatch, *arguments, answers=answers)
    assert ended.code == 2 and said in ended.err and ended.err.count("\n") == 1, ended.err
    assert [each.name for each in tmp_path.iterdir()] == ["there.py"]
    assert (tmp_path / "there.py").read_text() == "mine"
