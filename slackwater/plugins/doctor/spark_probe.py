"""Probe of Spark: starts it in one JVM, without Ray, and runs a job.

python -m slackwater.plugins.doctor.spark_probe
"""

from __future__ import annotations

import json
import sys

from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from state.clock import SystemClock


def main() -> None:
    """Prints the version of Spark, and the seconds of the start and the job."""
    clock = SystemClock()
    began_s = clock.monotonic()
    spark = start_local_session(SparkSettings(), "slackwater-doctor")
    warm_up(spark)
    found = {"version": spark.version, "seconds": clock.monotonic() - began_s}
    spark.stop()
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
