"""Tests of the public names: `__init__.pyi` lists each once, for type checkers too, and each loads at its first use."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import takewhile
from types import ModuleType

import pytest

import slackwater
from state import errors
from tests.repository import REPOSITORY

_HEAVY = ("pyarrow", "ray", "lance", "pyspark", "pandas", "numpy")
_ENTRY = re.compile(r" {4}\*{0,2}(\w+(?:, \*{0,2}\w+)*):")
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


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("OwnedError", "slackwater.errors.OwnedError"),
        ("FetchSettings", "slackwater.settings.FetchSettings"),
        ("CustomFormat", "slackwater.formats.CustomFormat"),
        ("row_count", "slackwater.expect.row_count"),
    ],
)
def test_a_name_of_a_public_module_is_found_there(name: str, place: str) -> None:
    with pytest.raises(AttributeError, match=f"'slackwater' has no attribute '{name}'; did you mean {place}?"):
        getattr(slackwater, name)


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match=r"^module 'slackwater' has no attribute 'Nothing'$"):
        getattr(slackwater, "Nothing")  # noqa: B009 - a type checker rejects the attribute


def test_an_error_of_the_module_of_a_name_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ModuleType("broken")
    monkeypatch.delitem(vars(slackwater), "Delta", raising=False)
    monkeypatch.setitem(sys.modules, "slackwater.plugins.publish.targets", broken)
    with pytest.raises(AttributeError, match=r"^module 'broken' has no attribute 'Delta'$"):
        _ = slackwater.Delta


def test_every_error_of_the_tree_is_exported() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree == set(slackwater.errors.__all__)


def _public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """The functions and methods that users call, by their names."""
    for module in ("slackwater", *(f"slackwater.{name}" for name in _MODULES)):
        listing = import_module(module)
        for name in listing.__all__:
            value = getattr(listing, name)
            if inspect.isfunction(value):
                yield name, value
            elif inspect.isclass(value):
                for method in vars(value):
                    if inspect.isfunction(vars(value)[method]) and not method.startswith("_"):
                        yield f"{name}.{method}", vars(value)[method]


def _undescribed(function: Callable[..., object]) -> list[str]:
    """The parameters that the section `Args` of a docstring leaves out; empty for a docstring without the section."""
    _, _, section = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    lines = takewhile(lambda line: not line or line.startswith(" "), section.split("\n"))
    entries = {name for line in lines if (entry := _ENTRY.match(line)) for name in entry[1].split(", ")}
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return [name for name in parameters if name not in entries] if entries else []


def test_the_docstring_of_a_public_function_describes_every_parameter_or_has_no_args() -> None:
    functions = dict(_public_functions())
    assert len(functions) > 50
    assert {name: left for name, function in functions.items() if (left := _undescribed(function))} == {}


def test_a_parameter_without_a_description_is_found() -> None:
    def function(first: int, second: int, third: int) -> None:
        """Does nothing.

        Args:
            first, third: numbers.
                second: a continued line.
        """

    assert _undescribed(function) == ["second"]


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
