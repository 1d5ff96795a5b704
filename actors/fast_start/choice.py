"""The choice between the fast start, which uses private parts of Ray, RayDP and Java, and the plain start."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import structlog

TESTED: Mapping[str, str] = {"ray": "2.60", "raydp": "1.6", "pyspark": "3.5"}
"""Package → the minor version with which the fast start is tested; `pyproject.toml` pins the same versions."""

_log = structlog.get_logger(actor="run")
# One entry: whether the settings of this process's connection to Ray ask for the fast start.
_of_ray = [True]


def untested(packages: tuple[str, ...]) -> dict[str, str]:
    """Package → its installed version, of the packages that have another minor version than the tested one."""
    installed = {each: _version(each) for each in packages}
    return {each: number for each, number in installed.items() if not number.startswith(f"{TESTED[each]}.")}


def chooses_fast(asked: bool, *packages: str) -> bool:
    """True if the fast start is used.  Logs one line for each process if a version prevents it.

    Args:
        asked: the setting `fast_start`.
        packages: the packages whose private parts are used.
    """
    return asked and not (_reported("ray") or _reported(*packages))


def choose_for_ray(asked: bool) -> bool:
    """Stores the setting for this process's connection to Ray.  Returns True if the fast start is used."""
    _of_ray[0] = asked
    return uses_private_ray()


def uses_private_ray() -> bool:
    """True if this process may use private parts of Ray."""
    return chooses_fast(_of_ray[0], "ray")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it is on the path without metadata, as a Spark of `SPARK_HOME`
        return "unknown"


@cache
def _reported(*packages: str) -> bool:
    """True if a package has an untested version, which is logged once."""
    if found := untested(packages):
        tested = {f"tested_{each}": f"{TESTED[each]}.*" for each in found}
        _log.warning("plain start, since the fast start is not tested with this version", **found, **tested)
    return bool(found)
