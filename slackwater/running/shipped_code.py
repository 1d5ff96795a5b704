"""The runtime environment of Ray workers: it has the code of the process that runs the pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("state", "actors", "spark_bridge", "slackwater")
_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"


def runtime_environment(given: Mapping[str, Any], *, joins_cluster: bool) -> dict[str, Any]:
    """The runtime environment of a run; in an existing cluster, with the packages of this project.

    So a cluster needs their dependencies, and not this project itself; if it has another version, all processes of a
    run still use the version of the driver.  In a job, Ray gives the runtime environment of the job to the driver and
    to the workers: nothing is added.

    Args:
        given: the user's runtime environment, as `ray.init` takes it.
        joins_cluster: this process joins an existing cluster.
    """
    if not joins_cluster or _JOB in os.environ:
        return dict(given)
    return {**given, "py_modules": [*given.get("py_modules", ()), *map(_directory, PACKAGES)]}


def _directory(package: str) -> str:
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, "it is part of this project"
    return str(Path(spec.origin).parent)
