"""Tests of the public face: `import slackwater` has the names in `__all__`, and loads them at first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import slackwater

_HEAVY = ("pyarrow", "ray", "lance", "pyspark", "pandas", "numpy")


def test_all_is_sorted_and_every_name_in_it_can_be_used() -> None:
    assert slackwater.__all__ == sorted(slackwater.__all__)
    for name in slackwater.__all__:
        assert getattr(slackwater, name) is not None
    assert set(slackwater.__all__) <= set(dir(slackwater))


def test_every_error_of_the_tree_is_exported() -> None:
    from state import errors

    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree <= set(slackwater.__all__)


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
