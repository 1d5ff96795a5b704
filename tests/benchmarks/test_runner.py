from __future__ import annotations

import ast
from pathlib import Path

import psutil
import pytest

import benchmarks.page
from benchmarks.__main__ import main
from benchmarks.catalogue import CATALOGUE, Entry, chosen
from benchmarks.runner import Runner

PACKAGE = Path(benchmarks.page.__file__).parent


def is_benchmark(module: Path) -> bool:
    """Whether it is a command with a result."""
    calls = (node for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "run_benchmark" for call in calls)


def test_every_benchmark_has_an_entry_and_a_text_and_no_other_has() -> None:
    modules = {module.stem for module in PACKAGE.glob("*.py") if is_benchmark(module)}
    texts = {text.stem for text in (PACKAGE / "prose").glob("*.md")} - {"_opening"}
    assert modules == {entry.name for entry in CATALOGUE} == texts


def test_quick_runs_those_with_a_quick_form_and_whatever_is_named() -> None:
    quick = chosen([], quick=True)
    assert [entry for entry in quick if entry.quick is None] == []
    assert len(quick) < len(chosen([], quick=False)) == len(CATALOGUE)
    assert [entry.name for entry in chosen(["long_life", "reading"], quick=True)] == ["reading", "long_life"]


@pytest.mark.more
def test_two_quick_benchmarks_make_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--only", "discovery_cost", "long_life", "--build", str(tmp_path)]) == 0
    page = (tmp_path / "quick" / "benchmarks.md").read_text(encoding="utf-8")
    assert "| 1,000,000 objects in the bucket | $1,296 |" in page
    assert "`python -m benchmarks.long_life --epochs 150" in page
    assert "| folded and vacuumed |" in page
    assert (tmp_path / "quick" / "images" / "long_life.svg").exists()
    assert "Not measured yet" in page, "the others have their place all the same"
    assert "2 benchmarks, 0 failed" in capsys.readouterr().out


def test_a_benchmark_that_fails_is_a_record_that_says_so(tmp_path: Path) -> None:
    record = Runner(tmp_path, quick=False).run(Entry("discovery_cost", full=("--new", "many")))
    assert record.result is None
    assert record.failed is not None
    assert record.failed.command == "python -m benchmarks.discovery_cost --new many"
    assert "exit code 2" in record.reason
    assert "invalid int value: 'many'" in record.reason


@pytest.mark.more
def test_a_benchmark_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    record = Runner(tmp_path, quick=False).run(Entry("parts", limit_s=3.0))
    assert record.reason == "it took longer than 3 s, and was ended"
    assert record.failed is not None
    assert record.failed.seconds < 15, "it would have gone on for longer"
    assert [each for each in psutil.Process().children(recursive=True) if "benchmarks.parts" in _command(each)] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "nothing"], "there is no benchmark 'nothing'; there are: realistic, "),
        (["--quick", "--write", "--only", "discovery_cost"], "quick numbers are not for docs/benchmarks.md"),
    ],
)
def test_wrong_words_are_refused_with_what_to_do(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(words)
    assert refused.value.code == 2
    assert said in capsys.readouterr().err


def _command(process: psutil.Process) -> list[str]:
    """The command line of a process; empty if it has ended meanwhile."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
