"""Rules of the layout beyond import-linter: users of Ray and Spark, names and pages of rooms, imports of the tests."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.repository import REPOSITORY

_PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
_BANNED_NAMES = {"utils", "helpers", "common", "manager", "base"}
_LARGEST_ROOM = 20
# Calls that an `assert` may make: `python -O` leaves the statement out, and with it every effect of its test.
_PURE_CALLS = {
    *("all", "any", "callable", "frozenset", "getattr", "hasattr", "isinstance", "issubclass", "len", "max", "min"),
    *("set", "sorted", "sum", "type", "endswith", "isdisjoint", "issubset", "items", "keys", "startswith", "values"),
}

# These rooms host plain classes on Ray and Spark.
_RAY_ROOMS = (Path("actors/hosting"), Path("spark_bridge/application"), Path("spark_bridge/hand_over"))
# `to_ray` and `to_spark` import Ray and Spark when a program that has them calls.
_EXITS = {Path("slackwater/reading/view.py")}


@cache
def _parsed(*packages: str) -> dict[Path, ast.Module]:
    """The modules of these packages, by their paths relative to the repository."""
    files = (file for package in packages for file in sorted((REPOSITORY / package).rglob("*.py")))
    return {file.relative_to(REPOSITORY): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those below it, without the branches under `if TYPE_CHECKING`."""
    yield node
    for child in node.orelse if isinstance(node, ast.If) and _is_for_types(node) else ast.iter_child_nodes(node):
        yield from _nodes(child)


def _is_for_types(branch: ast.If) -> bool:
    return isinstance(branch.test, ast.Name) and branch.test.id == "TYPE_CHECKING"


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names of imported modules."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _packages_at_run_time() -> dict[Path, set[str]]:
    """The packages that each module imports when it runs."""
    return {
        module: {name.partition(".")[0] for name in _imported(_nodes(tree))}
        for module, tree in _parsed(*_PACKAGES).items()
    }


def test_only_hosting_rooms_import_ray() -> None:
    assert [
        str(module)
        for module, packages in _packages_at_run_time().items()
        if "ray" in packages and module.parent not in _RAY_ROOMS and module not in _EXITS
    ] == []


def test_only_the_bridge_imports_spark() -> None:
    assert [
        str(module)
        for module, packages in _packages_at_run_time().items()
        if packages & {"pyspark", "py4j", "raydp"} and module.parts[0] != "spark_bridge" and module not in _EXITS
    ] == []


def test_a_module_is_named_for_what_it_holds() -> None:
    assert [str(module) for module in _parsed(*_PACKAGES) if module.stem in _BANNED_NAMES] == []


def test_a_room_is_a_page_without_logic_and_fits_a_look() -> None:
    modules = _parsed(*_PACKAGES)
    rooms = {module.parent for module in modules}
    pages = {room: modules.get(room / "__init__.py") for room in sorted(rooms - {Path("slackwater")})}
    assert [str(room) for room, page in pages.items() if page is None or not ast.get_docstring(page)] == []
    with_logic = [str(room) for room, page in pages.items() if page is not None and len(page.body) > 1]
    assert with_logic == [], "a room's page exports nothing: import from the module itself"
    sizes = {str(room): sum(module.parent == room for module in modules) for room in rooms}
    assert {room: size for room, size in sizes.items() if size > _LARGEST_ROOM} == {}


def test_every_package_explains_itself_and_is_typed() -> None:
    modules = _parsed(*_PACKAGES)
    designs = {package: ast.get_docstring(modules[Path(package, "__init__.py")]) or "" for package in _PACKAGES}
    assert [package for package, design in designs.items() if "Invariants" not in design] == []
    assert [package for package in _PACKAGES if not (REPOSITORY / package / "py.typed").is_file()] == []


def test_test_modules_share_through_fixtures_and_helper_modules() -> None:
    tests = _parsed("tests")
    test_modules = {".".join(file.with_suffix("").parts) for file in tests if file.stem.startswith("test_")}
    offenders = {
        str(file): sorted(test_modules.intersection(_imported(ast.walk(tree)))) for file, tree in tests.items()
    }
    assert {file: found for file, found in offenders.items() if found} == {}


def _effects(test: ast.expr) -> Iterator[str]:
    """The parts of the test of an assert that may change something."""
    for node in ast.walk(test):
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _PURE_CALLS:
                yield ast.unparse(node)


def test_no_assert_has_an_effect() -> None:
    asserts = [
        (module, node)
        for module, tree in _parsed(*_PACKAGES).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]
    found = [f"{module}:{node.lineno}: {effect}" for module, node in asserts for effect in _effects(node.test)]
    assert found == [], "`python -O` leaves asserts out: call first, then assert on the result"
