"""The additions of CONTRIBUTING.md, made in a copy of the packages by following its steps."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cases import few
from tests.repository import REPOSITORY

_PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
_RECIPES = {part.splitlines()[0]: part for part in re.split(r"^### ", _PAGE, flags=re.MULTILINE)[1:]}
_STEP = re.compile(
    r"^(?:New `(?P<new>[^`]+)`|"
    r"In `(?P<changed>[^`]+)`, (?:at the (?P<end>end)|behind `(?P<line>[^`]+)`)|Then this works):"
    r"\n\n```python\n(?P<code>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_NAMED = re.compile(r"`((?:actors|spark_bridge|slackwater|state|tests)/[\w/.]*)`")
# A function that exists is taken out first, so that the steps can add it.
_MISSING_BEFORE = {"An aggregate function": ("spark_bridge/operators/group/aggregate_functions.py", ', "Corr"')}


@dataclass(frozen=True)
class Copy:
    """A copy of the packages, to be changed."""

    root: Path

    def apply(self, step: re.Match[str]) -> None:
        code = step["code"]
        if step["new"]:
            path = self.root / step["new"]
            if path.name == "__init__.py":
                path.parent.mkdir()
            assert path.parent.is_dir(), f"{step['new']}: the room does not exist"
            assert not path.exists()
            path.write_text(code, encoding="utf-8")
        elif step["changed"]:
            path = self.root / step["changed"]
            text = path.read_text(encoding="utf-8")
            if step["end"]:
                path.write_text(text + code, encoding="utf-8")
            else:
                assert text.splitlines().count(step["line"]) == 1, (
                    f"{step['changed']}: {step['line']!r} is not one line"
                )
                path.write_text(text.replace(f"{step['line']}\n", f"{step['line']}\n{code}", 1), encoding="utf-8")

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    for package in ("state", "actors", "spark_bridge", "slackwater"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return Copy(tmp_path)


def test_there_is_a_recipe_for_each_usual_addition() -> None:
    assert sorted(_RECIPES) == [
        "A check of the doctor",
        "A counter",
        "A file format",
        "An aggregate function",
        "An operation",
        "An operator",
    ]


@pytest.mark.parametrize("name", ["A counter", "An operation"])
def test_a_counter_or_an_operation_is_in_two_files(name: str) -> None:
    steps = [step for step in _STEP.finditer(_RECIPES[name]) if step["new"] or step["changed"]]
    assert len({step["new"] or step["changed"] for step in steps}) == 2


def test_an_operator_is_in_one_room_and_the_registry() -> None:
    steps = [step for step in _STEP.finditer(_RECIPES["An operator"]) if step["new"] or step["changed"]]
    assert len({Path(step["new"]).parent for step in steps if step["new"]}) == 1
    assert {step["changed"] for step in steps if step["changed"]} == {"spark_bridge/operators/registry.py"}


@pytest.mark.parametrize("name", few(sorted(_RECIPES), "A file format"))
def test_a_stranger_who_follows_the_page_gets_what_it_says(name: str, copy: Copy) -> None:
    recipe = _RECIPES[name]
    for path in _NAMED.findall(recipe):
        exists = (REPOSITORY / path).exists()
        assert exists or f"New `{path}`" in recipe, f"{name}: {path} does not exist"
    steps = list(_STEP.finditer(recipe))
    assert len(steps) == recipe.count("```python"), f"{name}: a block of code belongs to no step"
    works = steps.pop()
    assert works[0].startswith("Then this works"), f"{name} ends with a check"
    if name in _MISSING_BEFORE:
        file, text = _MISSING_BEFORE[name]
        path = copy.root / file
        assert text in path.read_text(encoding="utf-8")
        path.write_text(path.read_text(encoding="utf-8").replace(text, "", 1), encoding="utf-8")
    assert copy.run(works["code"]).returncode != 0, f"{name}: its check passes before the steps"
    for step in steps:
        copy.apply(step)
    ended = copy.run(works["code"])
    assert ended.returncode == 0, f"{name}: {ended.stderr}"
