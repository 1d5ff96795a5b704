"""The corpus: each case is read as its table says, and the recorded results of other engines are true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from actors.formats.options import Csv, Json, Text
from actors.formats.registry import FORMATS
from tests.corpus.case import Case
from tests.corpus.cases import CASES
from tests.corpus.others import readings_of
from tests.corpus.readings import ours
from tests.corpus.record import ENGINES, recorded


def _title(case: Case) -> str:
    return case.title


@pytest.mark.parametrize("case", CASES, ids=_title)
def test_a_file_is_read_as_the_corpus_says(case: Case, tmp_path: Path) -> None:
    assert ours(case, tmp_path) == case.ours


def test_a_wrong_result_is_seen(tmp_path: Path) -> None:
    """Values that differ in their type or their digits alone have different texts."""
    case = next(case for case in CASES if case.title == "csv: leading zeros")
    assert ours(replace(case, schema="zip bigint"), tmp_path) == ("zip bigint", "[1234]", "[99999]")
    assert ours(replace(case, schema="zip double"), tmp_path) == ("zip double", "[1234.0]", "[99999.0]")


def test_titles_differ_and_every_case_is_recorded() -> None:
    titles = [case.title for case in CASES]
    assert sorted(set(titles)) == sorted(titles)
    assert list(recorded()) == titles, "record the results of the engines again: python -m tests.corpus.record"


def test_every_format_and_every_option_has_a_case() -> None:
    assert {case.format.name for case in CASES} == FORMATS.keys()
    for kind in (Csv, Json, Text):
        options = {name for case in CASES if isinstance(case.format, kind) for name in case.options}
        assert options == kind.__dataclass_fields__.keys() - {"name"}, kind


@pytest.mark.more
@pytest.mark.parametrize("engine", ENGINES)
def test_the_recorded_results_are_those_of_the_installed_version(engine: str) -> None:
    assert readings_of(engine) == {title: engines[engine] for title, engines in recorded().items()}
