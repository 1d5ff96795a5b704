"""Tests of the public names: `__init__.pyi` lists each once, for type checkers too, and each loads at its first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module

import pytest

import slackwater
from state import errors
from tests.repository import REPOSITORY

_HEAVY = ("pyarrow", "ray", "lance", "pyspark", "pandas", "numpy")
_MODULES = ("errors", "expect", "formats", "settings", "sources")


@pytest.mark.parametrize("module", ["slackwater", *(f"slackwater.{name}" for name in _MODULES)])
def test_a_public_module_has_every_name_that_it_lists(module: str) -> None:
    listing = import_module(module)
    assert len(set(listing.__all__)) == len(listing.__all__) > 0
    assert [name for name in listing.__all__ if getattr(listing, name, None) is None] == []
    assert set(listing.__all__) <= set(dir(listing))


def test_the_stub_lists_each_public_name_once() -> None:
    stub = ast.parse((REPOSITORY / "slackwater/__init__.pyi").read_text(encoding="utf-8"))
    imports = [name for node in ast.walk(stub) if isinstance(node, ast.ImportFrom) for name in node.names]
    assert sorted(name.name for name in imports) == slackwater.__all__
    assert [name.name for name in imports if name.asname != name.name] == [], "`X as X` exports X to type checkers"


def test_every_error_of_the_tree_is_exported() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree == set(slackwater.errors.__all__)


@pytest.mark.parametrize(
    ("module", "heavy"), [("slackwater", (*_HEAVY, "obstore", "typer", "rich")), ("slackwater.cli.app", _HEAVY)]
)
def test_import_is_light(module: str, heavy: tuple[str, ...]) -> None:
    code = f"""
import sys
import {module}
loaded = sorted({set(heavy)!r} & set(sys.modules))
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
