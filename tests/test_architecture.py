"""What import-linter cannot say: who may import Ray and Spark, and how large a module may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
_MODULES = sorted(path.relative_to(_ROOT) for package in _PACKAGES for path in (_ROOT / package).rglob("*.py"))
_BANNED_NAMES = {"utils", "helpers", "common", "manager", "base"}
_LONGEST = 500

# What hosts the plain classes on Ray and Spark, beside `actors/*_actor.py`.
_RAY_HOSTS = {
    Path("actors/hosting/actor_group.py"),
    Path("actors/hosting/coordinator.py"),
    Path("actors/hosting/lean_ray.py"),
    Path("actors/hosting/metric_exporter.py"),
    Path("actors/hosting/run_client.py"),
    Path("spark_bridge/application/app_master.py"),
    Path("spark_bridge/hand_over/blocks.py"),
    Path("spark_bridge/application/ray_application.py"),
}
# `to_ray` and `to_spark` import when they are called, by somebody who has what they import.
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


def _may_import_ray(module: Path) -> bool:
    return (module.parts[0] == "actors" and module.stem.endswith("_actor")) or module in _RAY_HOSTS | _EXITS


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_only_shells_and_the_session_import_ray(module: Path) -> None:
    if not _may_import_ray(module):
        assert "ray" not in set(_imported(_ROOT / module))


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_only_the_bridge_imports_spark(module: Path) -> None:
    if module.parts[0] != "spark_bridge" and module not in _EXITS:
        assert not {"pyspark", "py4j", "raydp"} & set(_imported(_ROOT / module))


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_modules_are_short_and_named_for_what_they_hold(module: Path) -> None:
    assert len((_ROOT / module).read_text().splitlines()) <= _LONGEST
    assert module.stem not in _BANNED_NAMES


@pytest.mark.parametrize("package", _PACKAGES)
def test_every_package_explains_itself_and_is_typed(package: str) -> None:
    design = ast.get_docstring(ast.parse((_ROOT / package / "__init__.py").read_text()))
    assert design and "Invariants" in design
    assert (_ROOT / package / "py.typed").is_file()
