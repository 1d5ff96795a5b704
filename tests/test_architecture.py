"""Rules of the layout beyond import-linter: users of Ray and Spark, names and pages of rooms, imports of the tests."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.repository import ONE_PROCESS, PACKAGES, REPOSITORY, SIMULATOR, trees

pytestmark = ONE_PROCESS

_BANNED_NAMES = {"utils", "helpers", "common", "manager", "base"}
_LARGEST_ROOM = 20
# Calls that an `assert` may make: `python -O` leaves the statement out, and with it every effect of its test.
_PURE_CALLS = {
    *("all", "any", "callable", "frozenset", "getattr", "hasattr", "isinstance", "issubclass", "len", "max", "min"),
    *("set", "sorted", "sum", "type", "endswith", "isdisjoint", "issubset", "items", "keys", "startswith", "values"),
}

# Methods that delete, overwrite, rename or move.  Ruff's `banned-api` sees functions of modules, and no methods.
_REMOVING_METHODS = {
    *("unlink", "rmdir", "rmtree", "rename", "write_text", "write_bytes", "truncate", "cleanup_old_versions"),
    *("expire_snapshots", "remove_orphan_files", "delete_object", "delete_objects", "put_object", "copy_object"),
    *("upload_file", "upload_fileobj", "download_file", "delete_file", "delete_dir", "delete_dir_contents"),
    *("open_output_stream", "new_output", "drop_table", "purge_table", "drop_index", "put_async", "delete_async"),
}
# `X.tags.delete(...)`, `X.io.delete(...)`, `X.branches.delete(...)`.
_REMOVING_PARTS = {"tags", "io", "branches"}
# Where such a call is right outside `state/removal`.
_MAY_REMOVE = {
    "actors/objects/web_listing.py: file.truncate()": "a temporary file without a name",
    "slackwater/plugins/demo/place.py: self._client.put_object(...)": "a bucket of the demo's own server",
    "slackwater/plugins/demo/scenario.py: self._log.open('ab')": "in a directory that was empty",
    "slackwater/plugins/demo/scenario.py: self._events.open('ab')": "in a directory that was empty",
    "slackwater/plugins/publish/publishing_process.py: os.fdopen(...)": "the standard output",
    "spark_bridge/engine/fast_start/class_archive.py: open(...)": "an empty file for a lock, in a private directory",
    "spark_bridge/engine/execution/driver_plan.py: os.fdopen(...)": "a file in memory",
    "actors/objects/range_cache.py: open(...)": "a file that the call creates",
    "slackwater/plugins/publish/iceberg_files.py: io.new_output(...)": "a file of a new name",
    "slackwater/plugins/publish/iceberg_table.py: table.io.new_output(...)": "a marker, if the table has no marker",
    "slackwater/commands/replace_table.py: table.replace(rows)": "a version of a static table",
    "slackwater/running/corrections.py: StaticTable(location, name).replace(rows)": "a version of a static table",
    "spark_bridge/datasets/result_rows.py: table.replace(...)": "a version of a dataset",
    "spark_bridge/datasets/view_table.py: self.replace(...)": "a version of a dataset",
    "spark_bridge/datasets/view_table.py: self._writer.replace(rows)": "a version of a dataset",
}

# These rooms host plain classes on Ray and Spark.
_RAY_ROOMS = (
    *(Path("actors/fast_start"), Path("actors/hosting")),
    *(Path("spark_bridge/engine/application"), Path("spark_bridge/engine/fast_start"), Path("spark_bridge/ingest")),
)
_FAST_START = Path("actors/fast_start")
# `to_ray` and `to_spark` import Ray and Spark when a program that has them calls.
_EXITS = {Path("slackwater/reading/view.py")}


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
    return {module: {name.partition(".")[0] for name in _imported(_nodes(tree))} for module, tree in trees().items()}


def _modules_in_rooms() -> dict[Path, ast.Module]:
    """The modules of the packages and of the simulator, without the tests of the simulator."""
    modules = trees(*PACKAGES, SIMULATOR)
    return {module: tree for module, tree in modules.items() if not module.stem.startswith(("test_", "conftest"))}


def test_only_hosting_rooms_import_ray() -> None:
    assert [
        str(module)
        for module, packages in _packages_at_run_time().items()
        if "ray" in packages and module.parent not in _RAY_ROOMS and module not in _EXITS
    ] == []


def test_only_the_fast_start_uses_private_parts_of_ray() -> None:
    """By an import, or as `ray._private` in an expression."""
    assert [
        str(module)
        for module, tree in trees(*PACKAGES).items()
        if module.parent != _FAST_START
        and (
            any(name.startswith("ray._") for name in _imported(ast.walk(tree)))
            or any(isinstance(node, ast.Attribute) and node.attr == "_private" for node in ast.walk(tree))
        )
    ] == []


def test_only_the_bridge_imports_spark() -> None:
    assert [
        str(module)
        for module, packages in _packages_at_run_time().items()
        if packages & {"pyspark", "py4j", "raydp"} and module.parts[0] != "spark_bridge" and module not in _EXITS
    ] == []


def test_a_module_is_named_for_what_it_holds() -> None:
    assert [str(module) for module in _modules_in_rooms() if module.stem in _BANNED_NAMES] == []


def test_a_room_is_a_page_without_logic_and_fits_a_look() -> None:
    modules = _modules_in_rooms()
    rooms = {module.parent for module in modules}
    pages = {room: modules.get(room / "__init__.py") for room in sorted(rooms - {Path("slackwater")})}
    assert [str(room) for room, page in pages.items() if page is None or not ast.get_docstring(page)] == []
    with_logic = [str(room) for room, page in pages.items() if page is not None and len(page.body) > 1]
    assert with_logic == [], "a room's page exports nothing: import from the module itself"
    sizes = {str(room): sum(module.parent == room for module in modules) for room in rooms}
    assert {room: size for room, size in sizes.items() if size > _LARGEST_ROOM} == {}


def test_every_package_explains_itself_and_is_typed() -> None:
    modules = trees()
    designs = {package: ast.get_docstring(modules[Path(package, "__init__.py")]) or "" for package in PACKAGES}
    assert [package for package, design in designs.items() if "Invariants" not in design] == []
    assert [package for package in PACKAGES if not (REPOSITORY / package / "py.typed").is_file()] == []


def test_test_modules_share_through_fixtures_and_helper_modules() -> None:
    tests = trees("tests")
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
        (module, node) for module, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.Assert)
    ]
    found = [f"{module}:{node.lineno}: {effect}" for module, node in asserts for effect in _effects(node.test)]
    assert found == [], "`python -O` leaves asserts out: call first, then assert on the result"


def _removing_calls(tree: ast.AST) -> Iterator[str]:
    """The calls that delete, overwrite, rename or move something, as far as their names show it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        above = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        values = [each.value for each in (*node.args, *(word.value for word in node.keywords)) if _is_text(each)]
        is_removing = (
            (name in _REMOVING_METHODS and owner is not None)
            or (name == "delete" and above in _REMOVING_PARTS)
            # `Path.replace` takes one argument; `str.replace` two, and `dataclasses.replace` is a function.
            or (name == "replace" and owner is not None and len(node.args) == 1 and not node.keywords)
            # Delta's vacuum takes arguments; ours do not.
            or (name == "vacuum" and owner is not None and bool(node.args or node.keywords))
            or (name in ("open", "fdopen") and any(_opens_for_writing(each) for each in values))
        )
        if is_removing:
            yield ast.unparse(node)


def _is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _opens_for_writing(mode: object) -> bool:
    return isinstance(mode, str) and bool(set(mode) & set("wa+")) and set(mode) <= set("rwabt+")


def test_only_one_room_deletes_overwrites_or_renames() -> None:
    found = {
        f"{module}: {call}"
        for module, tree in trees().items()
        if not module.is_relative_to("state/removal") and not module.is_relative_to("slackwater/testing")
        for call in _removing_calls(tree)
    }
    left = {call for call in found if not any(_is_allowed(call, allowed) for allowed in _MAY_REMOVE)}
    assert left == set(), "pass evidence to `state.removal`"
    unused = {allowed for allowed in _MAY_REMOVE if not any(_is_allowed(call, allowed) for call in found)}
    assert unused == set()


def _is_allowed(call: str, allowed: str) -> bool:
    return call == allowed or (allowed.endswith("(...)") and call.startswith(allowed.removesuffix("...)")))


@pytest.mark.parametrize(
    "call",
    [
        *("path.unlink()", "path.rmdir()", "path.rename(other)", "path.replace(other)", "path.write_text('')"),
        *("path.open('w')", "open(path, 'ab')", "path.open(mode='r+b')", "dataset.cleanup_old_versions()"),
        *("dataset.tags.delete(tag)", "table.vacuum(0, dry_run=False)", "table.io.delete(path)"),
        *(
            "table.maintenance.expire_snapshots()",
            "client.delete_object(Bucket=b, Key=k)",
            "client.put_object(Bucket=b)",
        ),
    ],
)
def test_calls_that_remove_are_recognised(call: str) -> None:
    assert list(_removing_calls(ast.parse(call)))


@pytest.mark.parametrize(
    "call",
    [
        "text.replace('a', 'b')",
        "replace(value, a=1)",
        "time.replace(tzinfo=None)",
        "store.vacuum()",
        "open(path)",
        "f.open('xb')",
    ],
)
def test_calls_that_remove_nothing_are_accepted(call: str) -> None:
    assert not list(_removing_calls(ast.parse(call)))
