"""Spark's authentication: the processes of an application share a secret, and take nothing from other ones.

Without it a JVM takes serialised objects of Java from every process that reaches its ports, and so runs their code.

    prepare_secret    before Ray starts: a secret in the environment, which Ray's workers inherit
    secret_properties for workers of another Ray, which do not inherit it
    share_one_id      one application id for all: RayDP gives the executors another one, and the driver refuses them
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psutil
import ray
from pyspark.sql import SparkSession

from state.errors import SparkNotStartedError

# Spark's own variable, which counts before its setting.
_VARIABLE = "_SPARK_AUTH_SECRET"
_BYTES = 32

ENABLED = "spark.authenticate"
CONFIGS = {"spark.authenticate.secret": "in-the-environment"}
"""Spark requires a value here, in command lines; the secret itself stands in no command line."""


# One entry for each secret that this process has made: the nodes of a cluster that runs already lack it.
_made = set[str]()


def prepare_secret() -> None:
    """Puts a secret into this process's environment, unless it has one."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = os.urandom(_BYTES).hex()
        _made.add(os.environ[_VARIABLE])


def require_shared_secret() -> None:
    """Refuses RayDP's own start in a cluster whose workers lack the secret: its executors would be refused for ever.

    Raises:
        SparkNotStartedError: with what to do.
    """
    if os.environ[_VARIABLE] in _made and not workers_inherit():
        raise SparkNotStartedError(
            "the plain start of Spark cannot send Spark's secret to a Ray cluster that runs already; start the nodes "
            f"and this process with the same {_VARIABLE} in the environment, or, in a network that you trust, set "
            f'SparkSettings(configs={{"{ENABLED}": "false"}})'
        )


def secret_properties() -> Mapping[str, str]:
    """Properties of a JVM that give its Ray actors the secret by a runtime environment; empty if they inherit it."""
    if workers_inherit():
        return {}
    return {f"ray.job.runtime-env.env-vars.{_VARIABLE}": os.environ[_VARIABLE]}


def share_one_id(spark: SparkSession) -> None:
    """Gives the driver's server and client of blocks the application id of RayDP's executors.

    Args:
        spark: a session on RayDP that has run no job.
    """
    context = spark.sparkContext._jsc.sc()
    if not context.conf().getBoolean(ENABLED, False):
        return
    application_id = _field(context.schedulerBackend(), "appId").get()
    service = context.env().blockManager().blockTransferService()
    _set(_field(_field(service, "transportContext"), "rpcHandler"), "appId", application_id)
    bootstraps = _field(_field(service, "clientFactory"), "clientBootstraps")
    for index in range(bootstraps.size()):
        _set(bootstraps.get(index), "appId", application_id)


def workers_inherit() -> bool:
    """Whether this process has started all of Ray, and after `prepare_secret`."""
    secrets = set()
    for each in psutil.Process().children():
        with suppress(psutil.Error):  # a child that ends just now
            if each.name() == "raylet":
                secrets.add(each.environ().get(_VARIABLE))
    return len(ray.nodes()) == 1 and secrets == {os.environ[_VARIABLE]}


def _declared(java_object: Any, name: str) -> Any:
    """A field of an object, by its name in its class or in one above it; Scala may put the class before the name."""
    of_class = java_object.getClass()
    while of_class is not None:
        for field in of_class.getDeclaredFields():
            if field.getName() == name or field.getName().endswith(f"$${name}"):
                field.setAccessible(True)
                return field
        of_class = of_class.getSuperclass()
    raise SparkNotStartedError(
        f"{java_object.getClass().getName()} has no field {name}: this version of Spark or RayDP is not supported"
    )


def _field(java_object: Any, name: str) -> Any:
    return _declared(java_object, name).get(java_object)


def _set(java_object: Any, name: str, value: str) -> None:
    _declared(java_object, name).set(java_object, value)
