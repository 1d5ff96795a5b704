"""Notes of decisions are numbered without gaps, have one form, are in the index once, and name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.page import DOCS, name
from tests.repository import PACKAGES, REPOSITORY

_FOLDER = DOCS / "design/decisions"
_NOTES = sorted(_FOLDER.glob("[0-9]*.md"))
_ONE_PAGE = 700
"""The most words of a note."""
_FILE = re.compile(r"`((?:\w+/)+\w+\.(?:py|java|md)|(?:tests|state|actors|spark_bridge|slackwater)/[\w/]+)`")
_ROOTS = (REPOSITORY, *(REPOSITORY / package for package in PACKAGES))


def _title(note: Path) -> str:
    return note.read_text(encoding="utf-8").split("\n", 1)[0]


def test_notes_are_numbered_without_gaps() -> None:
    assert [int(note.name[:4]) for note in _NOTES] == list(range(1, len(_NOTES) + 1))
    for note in _NOTES:
        assert _title(note).startswith(f"# {int(note.name[:4])}. "), name(note)


def test_the_index_has_every_note_once_with_its_title_and_what_was_decided() -> None:
    index = (_FOLDER / "index.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\* \[([^\]]+)\]\((\d{4}-[\w-]+\.md)\): .+\.$", index, re.MULTILINE)
    assert sorted(entries) == sorted((_title(note).removeprefix("# "), note.name) for note in _NOTES)


def test_every_note_has_its_context_the_decision_and_the_consequences_on_one_page() -> None:
    for note in _NOTES:
        text = note.read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)[1:]
        assert headings == ["Context", "Decision", "Consequences"], name(note)
        assert len(text.split()) <= _ONE_PAGE, f"{name(note)} is longer than one page"


def test_no_note_names_a_file_that_does_not_exist() -> None:
    for note in _NOTES:
        for path in set(_FILE.findall(note.read_text(encoding="utf-8"))):
            assert any((root / path).exists() for root in _ROOTS), f"{name(note)}: {path} does not exist"
