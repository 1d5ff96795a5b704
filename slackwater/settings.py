"""The settings of a pipeline, as frozen values.  Components that can be replaced (clock, store) are not settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from actors.settings import (
    BarrierSettings,
    CacheSettings,
    FetchSettings,
    ReadLimits,
    RecoverySettings,
    RequestSettings,
    require_one_of,
    require_positive,
)
from actors.sources.pipeline_definition import DEFAULT_BACKFILL_WEIGHT, DEFAULT_JOIN_MEMORY_BYTES
from actors.sources.placement import ActorResources, PlacementSettings
from actors.telemetry.logging import REDACTED
from actors.telemetry.masked_repr import masked_repr
from spark_bridge.engine.session.settings import SparkSettings
from state.errors import SettingsError
from state.location import Durability
from state.upkeep.retention import RetentionSettings, Thinning

__all__ = [
    "ActorResources",
    "BarrierSettings",
    "CacheSettings",
    "FetchSettings",
    "PlacementSettings",
    "RaySettings",
    "ReadLimits",
    "RecoverySettings",
    "RequestSettings",
    "RetentionSettings",
    "Settings",
    "SparkSettings",
    "Thinning",
]


@dataclass(frozen=True, kw_only=True)
class RaySettings:
    """The Ray cluster of a run.

    Args:
        address: of a running cluster, as `ray.init` takes it (`"auto"`, `"HOST:6379"`); None takes the environment
            variable `RAY_ADDRESS`, which Ray sets in a job, and without it starts a cluster on this machine; `"local"`
            always starts one.
        num_cpus: logical CPUs of a cluster that this process starts; None takes all of the machine.
        namespace: the namespace of the named coordinators.
        runtime_env: the runtime environment of the workers, as `ray.init` takes it
            (`{"py_modules": ["my_formats"]}`).  Outside of a job, the packages of this project are added.
        fast_start: whether the start may use private parts of Ray: a Ray of the run's own has no process that the run
            does not need, and actors are forks of one process.  False uses only public functions, which takes longer.
            A version of Ray that is not tested with the fast start has the effect of False.
    """

    address: str | None = None
    num_cpus: int | None = None
    namespace: str = "slackwater"
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    fast_start: bool = True

    def __post_init__(self) -> None:
        if self.num_cpus is not None:
            require_positive(self, "num_cpus")
            if self.address is not None:
                raise SettingsError(
                    f"RaySettings(num_cpus={self.num_cpus}): the cluster at {self.address} has its own CPUs; "
                    "leave one of them out"
                )
        if not self.namespace:
            raise SettingsError("RaySettings(namespace=''): give a name")
        if not isinstance(self.runtime_env, Mapping) or not all(isinstance(name, str) for name in self.runtime_env):
            raise SettingsError(
                f"RaySettings(runtime_env={self.runtime_env!r}): give a mapping, for example "
                '{"py_modules": ["my_formats"], "env_vars": {"TZ": "UTC"}}'
            )

    def __repr__(self) -> str:
        """The values of environment variables are masked."""
        variables = self.runtime_env.get("env_vars")
        if not variables:
            return masked_repr(self)
        return masked_repr(self, runtime_env={**self.runtime_env, "env_vars": dict.fromkeys(variables, REDACTED)})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a pipeline.

    Args:
        barrier: the length of epochs.
        fetch: the reading of files.
        spark: the Spark session.
        ray: the Ray cluster.
        placement: the nodes for the actors.
        recovery: the reaction to failures.
        retention: the epochs that stay readable.
        join_memory_bytes: memory of the run for rows of joins and below window functions, in which an epoch looks its
            keys up: the hottest rows for each byte.  Others are looked up in the root.  0 keeps none.
        backfill_weight: the share of the run's time that backfills take at most while files come, above 0 and up to 1;
            a backfill takes all of the time when none has come for ten seconds.  The other views are fresher with less,
            and the later view is complete sooner with more.
        durability: the losses that a committed epoch survives on a local root: `"power_loss"` syncs its files to the
            disk before it is acknowledged, `"process"` leaves that to the system, so that a power cut may damage the
            root.  A root in an object store survives both.
    """

    barrier: BarrierSettings = field(default_factory=BarrierSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    ray: RaySettings = field(default_factory=RaySettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    join_memory_bytes: int = DEFAULT_JOIN_MEMORY_BYTES
    backfill_weight: float = DEFAULT_BACKFILL_WEIGHT
    durability: Durability = "power_loss"

    def __post_init__(self) -> None:
        require_one_of("Settings(durability)", self.durability, get_args(Durability))
        if self.join_memory_bytes:
            require_positive(self, "join_memory_bytes")
        require_positive(self, "backfill_weight")
        if self.backfill_weight > 1:
            raise SettingsError(f"Settings(backfill_weight={self.backfill_weight!r}): it may not be above 1")
