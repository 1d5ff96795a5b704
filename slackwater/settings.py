"""Everything that can be set about a run, as frozen values.  What can be swapped (clock, store) is never a setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from actors.settings import BarrierSettings, FetchSettings, RecoverySettings, require_positive
from actors.sources.placement import ActorResources, PlacementSettings
from state.errors import SettingsError
from state.upkeep.retention import RetentionSettings, Thinning

if TYPE_CHECKING:
    from spark_bridge.session.settings import SparkSettings

__all__ = [
    "ActorResources",
    "BarrierSettings",
    "FetchSettings",
    "PlacementSettings",
    "RaySettings",
    "RecoverySettings",
    "RetentionSettings",
    "Settings",
    "Thinning",
]


@dataclass(frozen=True, kw_only=True)
class RaySettings:
    """Which Ray cluster to run on.

    Args:
        address: of a running cluster, as `ray.init` takes it (`"auto"`, `"HOST:6379"`); None takes that of the
            environment variable `RAY_ADDRESS`, which Ray sets in a job, and where there is none starts a cluster on
            this machine; `"local"` always starts one.
        num_cpus: logical CPUs of a cluster started here; None takes all of the machine.
        namespace: where the named coordinator of each root is found.
        runtime_env: what the workers of the cluster get before they start, as `ray.init` takes it
            (`{"py_modules": ["my_formats"]}`).  Outside of a job this project's own packages are added.
    """

    address: str | None = None
    num_cpus: int | None = None
    namespace: str = "slackwater"
    runtime_env: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.num_cpus is not None:
            require_positive(self, "num_cpus")
            if self.address is not None:
                raise SettingsError(
                    f"RaySettings(num_cpus={self.num_cpus}): the cluster at {self.address} has its own; "
                    "leave one of them out"
                )
        if not self.namespace:
            raise SettingsError("RaySettings(namespace=''): give a name")
        if not isinstance(self.runtime_env, Mapping) or not all(isinstance(name, str) for name in self.runtime_env):
            raise SettingsError(
                f"RaySettings(runtime_env={self.runtime_env!r}): give a mapping, as "
                '{"py_modules": ["my_formats"], "env_vars": {"TZ": "UTC"}}'
            )


def _default_spark() -> SparkSettings:
    # Not imported above: what only reads a root must not load the packages of Ray and Spark.
    from spark_bridge.session.settings import SparkSettings

    return SparkSettings()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a pipeline.

    Args:
        barrier: when epochs are made.
        fetch: how files are read.
        spark: the Spark session.
        ray: the Ray cluster.
        placement: which of its nodes the actors take.
        recovery: what follows a failure.
        retention: which epochs stay readable.
    """

    barrier: BarrierSettings = field(default_factory=BarrierSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    spark: SparkSettings = field(default_factory=_default_spark)
    ray: RaySettings = field(default_factory=RaySettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
