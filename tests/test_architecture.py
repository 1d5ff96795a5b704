"""What import-linter cannot say: who may import Ray and Spark, and how large a module may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import REPOSITORY

_PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
_MODULES = sorted(
    path.relative_to(REPOSITORY) for package in _PACKAGES for path in (REPOSITORY / package).rglob("*.py")
)
_ROOMS = sorted({module.parent for module in _MODULES})
_BANNED_NAMES = {"utils", "helpers", "common", "manager", "base"}
_LARGEST_ROOM = 20

# Calls that an `assert` may make: `python -O` leaves the statement out, and with it whatever its test does.
_PURE_CALLS = {
    *(
        "all",
        "any",
        "callable",
        "frozenset",
        "getattr",
        "hasattr",
        "isinstance",
        "issubclass",
        "len",
        "max",
        "min",
        "set",
    ),
    *("sorted", "sum", "type", "endswith", "isdisjoint", "issubset", "items", "keys", "startswith", "values"),
}

# Plain classes are hosted on Ray and Spark by these rooms.
_RAY_ROOMS = (Path("actors/hosting"), Path("spark_bridge/application"), Path("spark_bridge/hand_over"))
# `to_ray` and `to_spark` import when they are called, by a program that has what they import.
_EXITS = {Path("slackwater/reading/view.py")}


def _imported(path: Path) -> Iterator[str]:
    """The packages that a module imports when it runs, wherever in it."""
    for node in ast.walk(_running(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _running(tree: ast.Module) -> ast.Module:
    """The tree without what stands under `if TYPE_CHECKING`."""

    class _Dropper(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                return node.orelse
            return self.generic_visit(node)

    stripped = _Dropper().visit(tree)
    assert isinstance(stripped, ast.Module)
    return stripped


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_only_hosting_rooms_import_ray(module: Path) -> None:
    if module.parent not in _RAY_ROOMS and module not in _EXITS:
        assert "ray" not in set(_imported(REPOSITORY / module))


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_only_the_bridge_imports_spark(module: Path) -> None:
    if module.parts[0] != "spark_bridge" and module not in _EXITS:
        assert not {"pyspark", "py4j", "raydp"} & set(_imported(REPOSITORY / module))


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_a_module_is_named_for_what_it_holds(module: Path) -> None:
    assert module.stem not in _BANNED_NAMES


@pytest.mark.parametrize("room", _ROOMS, ids=str)
def test_a_room_is_a_page_without_logic_and_fits_a_look(room: Path) -> None:
    if room != Path("slackwater"):
        page = ast.parse((REPOSITORY / room / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(page)
        assert len(page.body) == 1, "a room's page exports nothing: import from the module itself"
    modules = [module for module in _MODULES if module.parent == room]
    assert len(modules) <= _LARGEST_ROOM


@pytest.mark.parametrize("package", _PACKAGES)
def test_every_package_explains_itself_and_is_typed(package: str) -> None:
    design = ast.get_docstring(ast.parse((REPOSITORY / package / "__init__.py").read_text()))
    assert design and "Invariants" in design
    assert (REPOSITORY / package / "py.typed").is_file()


def _effects(test: ast.expr) -> Iterator[str]:
    """The parts of an assert's test that may change something."""
    for node in ast.walk(test):
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _PURE_CALLS:
                yield ast.unparse(node)


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_no_assert_has_an_effect(module: Path) -> None:
    tree = ast.parse((REPOSITORY / module).read_text(encoding="utf-8"))
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    found = [f"line {each.lineno}: {effect}" for each in asserts for effect in _effects(each.test)]
    assert not found, "`python -O` leaves asserts out: call first, then assert on the result"
