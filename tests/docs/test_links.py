"""Links of the documentation lead somewhere, and those to tests to a test of that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.location import SECRET_OPTIONS
from tests.docs.page import DOCS, name, pages
from tests.repository import REPOSITORY

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_HOST = re.compile(r"(?<![:\w])(?:/root|/work|/Users|/home/(?!slackwater\b)\w+)/|\b(?:192\.168|10\.\d+)\.\d+\.\d+\b")
_PAGES = [*pages(), *sorted(REPOSITORY.glob("*.md"))]


def _links(page: Path) -> Iterator[tuple[str, str]]:
    """Target and anchor of every link to something in the repository."""
    for match in _LINK.finditer(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in match[1] and not match[1].startswith("mailto:"):
            target, _, anchor = match[1].partition("#")
            yield target, anchor


def _anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as mkdocs makes it."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    words = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in plain]
    return {re.sub(r"[-\s]+", "-", each) for each in words}


def _tests(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("page", sorted(set(_PAGES)), ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in _links(page):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name(page)}: there is no {target}"
        assert file.is_relative_to(REPOSITORY), f"{name(page)}: {target} is outside of the repository"
        if anchor and file.suffix == ".md":
            assert anchor in _anchors(file), f"{name(page)}: {target} has no heading #{anchor}"
        elif anchor:
            assert anchor in _tests(file), f"{name(page)}: {target} has no test {anchor}"


def test_every_promise_has_tests_and_each_is_named_for_what_it_checks() -> None:
    text = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    promises, _, _ = text.partition("## What is not promised")
    sections = promises.split("\n## ")[1:]
    assert len(sections) == 8
    for section in sections:
        named = re.findall(r"\[([^\]]+)\]\(\.\./tests/[^)#]+#test_(\w+)\)", section)
        assert len(named) >= 2, f"no tests for: {section.splitlines()[0]}"
        for said, test in named:
            assert said == test.replace("_", " ")


def test_every_promise_about_trust_has_a_test() -> None:
    text = (DOCS / "trust.md").read_text(encoding="utf-8")
    promises = re.findall(r"^\* (?:.+\n(?:  .+\n)*)", text, re.MULTILINE)
    assert len(promises) > 25
    assert [promise for promise in promises if "](../tests/" not in promise] == []
    assert [name for name in SECRET_OPTIONS if f"`{name}`" not in text] == [], "the page names every secret option"


def test_no_page_names_a_directory_or_a_host_of_whoever_wrote_it() -> None:
    for page in _PAGES:
        found = _HOST.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{name(page)}: {found and found[0]}"


def test_every_picture_is_shown_and_there() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in _PAGES
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert shown == {path for path in (DOCS / "images").iterdir() if path.suffix in (".svg", ".png")}
