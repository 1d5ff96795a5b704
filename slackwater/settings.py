"""Everything that can be set about a run, as frozen values.  What can be swapped (clock, store) is never a setting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.settings import BarrierSettings, FetchSettings, RecoverySettings, require_positive
from state.errors import SettingsError
from state.retention import RetentionSettings, Thinning

if TYPE_CHECKING:
    from spark_bridge.session import SparkSettings

__all__ = [
    "BarrierSettings",
    "FetchSettings",
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
        address: of a running cluster, as `ray.init` takes it (`"auto"`); None starts one on this machine.
        num_cpus: logical CPUs of a cluster started here; None takes all of the machine.
        namespace: where the named coordinator of each root is found.
    """

    address: str | None = None
    num_cpus: int | None = None
    namespace: str = "slackwater"

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


def _default_spark() -> SparkSettings:
    # Not imported above: what only reads a root must not load the packages of Ray and Spark.
    from spark_bridge.session import SparkSettings

    return SparkSettings()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a pipeline.

    Args:
        barrier: when epochs are made.
        fetch: how files are read.
        spark: the Spark session.
        ray: the Ray cluster.
        recovery: what follows a failure.
        retention: which epochs stay readable.
    """

    barrier: BarrierSettings = field(default_factory=BarrierSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    spark: SparkSettings = field(default_factory=_default_spark)
    ray: RaySettings = field(default_factory=RaySettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
