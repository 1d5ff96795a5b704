"""Tests of the public face: `import slackwater` has the names in `__all__`, and loads them at first use."""

from __future__ import annotations

import subprocess
import sys

import slackwater

_HEAVY = ("pyarrow", "ray", "lance", "pyspark", "obstore", "pandas", "numpy", "typer", "rich")


def test_all_is_sorted_and_every_name_in_it_can_be_used() -> None:
    assert slackwater.__all__ == sorted(slackwater.__all__)
    for name in slackwater.__all__:
        assert getattr(slackwater, name) is not None
    assert set(slackwater.__all__) <= set(dir(slackwater))


def test_every_error_of_the_tree_is_exported() -> None:
    from state import errors

    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree <= set(slackwater.__all__)


def test_import_is_light() -> None:
    code = f"""
import sys, time
started = time.perf_counter()
import slackwater
seconds = time.perf_counter() - started
loaded = sorted({set(_HEAVY)!r} & set(sys.modules))
assert not loaded, loaded
assert seconds < 0.3, seconds
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reading_needs_neither_ray_nor_spark() -> None:
    code = """
import sys
for forbidden in ("ray", "raydp", "pyspark", "py4j"):
    sys.modules[forbidden] = None  # importing it now fails
import slackwater as sw
try:
    sw.open("/nowhere/at/all")
except sw.StoreNotFoundError:
    pass
"""
    subprocess.run([sys.executable, "-c", code], check=True)
