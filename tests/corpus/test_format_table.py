"""The table of formats follows from the corpus, and has a reason for each difference of Slackwater."""

from __future__ import annotations

from tests.corpus.cases import CASES
from tests.corpus.format_table import PAGE, is_different, lacks_reason, page
from tests.corpus.reasons import REASONS
from tests.corpus.record import recorded


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: python -m tests.corpus.format_table"


def test_each_difference_has_its_reason() -> None:
    known = recorded()
    assert [case.title for case in CASES if lacks_reason(case, known[case.title].values())] == []
    assert REASONS.keys() <= known.keys()


def test_a_difference_is_one_of_values() -> None:
    case = next(case for case in CASES if case.title == "csv: leading zeros")
    assert is_different(case, ("zip int", "[1234]", "[99999]"))
    assert not is_different(case, ("zip varchar", *case.ours[1:]))
    assert not is_different(case, ("refused: ValueError",))
