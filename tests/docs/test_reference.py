"""The reference has everything that there is, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import slackwater
from state import errors
from tests.docs.page import DOCS
from tests.repository import PACKAGES, REPOSITORY, SIMULATOR
from website.command_page import MARKER, command_names, command_reference
from website.navigation import expanded

_OBJECT = re.compile(r"^::: (\S+)$", re.MULTILINE)


def _objects(folder: str) -> list[str]:
    pages = sorted((DOCS / folder).glob("*.md"))
    return [match[1] for page in pages for match in _OBJECT.finditer(page.read_text(encoding="utf-8"))]


def test_every_public_name_is_in_the_reference_once() -> None:
    """The page of errors takes them from their module; `Store` returns its parts, which have no public names."""
    own = [name for name in slackwater.__all__ if name not in ("SlackwaterError", "errors", "settings")]
    settings = [f"settings.{name}" for name in slackwater.settings.__all__ if name != "Settings"]
    documented = [path.removeprefix("slackwater.") for path in _objects("reference")]
    parts = ["state.errors", "reading.ledger.Ledger", "reading.views.Views"]
    assert sorted(documented) == sorted([*own, *settings, *parts])


def test_the_tree_of_errors_is_the_tree_of_classes() -> None:
    design = ast.get_docstring(ast.parse((REPOSITORY / "state/errors.py").read_text(encoding="utf-8"))) or ""
    path: list[str] = []
    drawn: dict[str, str] = {}
    for line in design.splitlines():
        if (entry := re.match(r"^ {4}([│├└─ ]*)([A-Z]\w+Error)\b", line)) is None:
            continue
        depth = len(entry[1]) // 4
        path[depth:] = [entry[2]]
        drawn[entry[2]] = path[depth - 1] if depth else "Exception"
    classes = {each: kind.__bases__[0].__name__ for each, kind in vars(errors).items() if isinstance(kind, type)}
    assert drawn == classes


def test_every_command_has_its_section_with_its_options() -> None:
    made = command_reference()
    assert re.findall(r"^## (\S+)$", made, re.MULTILINE) == command_names()
    assert "--takeover" in made and "slackwater verify" in made
    assert (DOCS / "reference/command.md").read_text(encoding="utf-8").count(MARKER) == 1


def _design_packages() -> list[str]:
    """Our packages with their rooms, and the simulator with its rooms."""
    pages = (file for package in (*PACKAGES, SIMULATOR) for file in (REPOSITORY / package).rglob("__init__.py"))
    return sorted(".".join(file.parent.relative_to(REPOSITORY).parts) for file in pages)


def test_every_package_and_room_has_its_design_page() -> None:
    assert sorted(_objects("design/packages")) == _design_packages()


@pytest.mark.parametrize("package", _design_packages())
def test_a_map_of_files_names_no_file_that_there_is_not(package: str) -> None:
    folder = REPOSITORY / Path(*package.split("."))
    design = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    for named in set(re.findall(r"(?<![\w/*<.])([a-z_]\w*\.py)\b", design)) - {"__init__.py", "app.py"}:
        assert list(folder.rglob(named)) or list(REPOSITORY.glob(f"*/{named}")), f"{package}: {named} is not there"


def test_a_pattern_in_the_navigation_is_every_page_of_its_folder_that_is_not_named() -> None:
    navigation = ["index.md", {"Guide": ["guide/b.md", "guide/*.md"]}, {"More": [{"Deep": "guide/c.md"}]}]
    pages = ["guide/a.md", "guide/b.md", "guide/c.md", "guide/d.md", "guide/deep/e.md", "index.md"]
    assert expanded(navigation, pages) == [
        "index.md",
        {"Guide": ["guide/b.md", "guide/a.md", "guide/d.md"]},
        {"More": [{"Deep": "guide/c.md"}]},
    ]
