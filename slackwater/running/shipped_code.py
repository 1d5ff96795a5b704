"""What the workers of a Ray cluster import: the code of the process that runs the pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"


def runtime_environment(given: Mapping[str, Any], *, joins_cluster: bool) -> dict[str, Any]:
    """The runtime environment of a run; in a cluster that was there before, with this project's packages in it.

    So a cluster needs what they depend on, and no version of this project itself; where it has one, all processes of a
    run use that of the driver all the same.  In a job Ray sets up the driver with the job's own runtime environment,
    and the workers alike: there nothing is added.

    Args:
        given: what the user wants, as `ray.init` takes it.
        joins_cluster: whether the workers are not those of a cluster that this process starts.
    """
    if not joins_cluster or _JOB in os.environ:
        return dict(given)
    return {**given, "py_modules": [*given.get("py_modules", ()), *map(_directory, PACKAGES)]}


def _directory(package: str) -> str:
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, "it is part of this project"
    return str(Path(spec.origin).parent)
