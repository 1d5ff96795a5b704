"""The pipeline of the kill tests in a cluster of several nodes: `python node_job.py ROOT BUCKET_URL CONTROL [large]`.

Fetch actors, and Spark's executor, are where a node has a resource for them; the actors that control the run where one
has the resource that CONTROL names.  With `large` epochs are as large as by default.  The storage options come in the
environment.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import slackwater as sw
from tests.real import job


def on_nodes(made: sw.Pipeline, control: str) -> sw.Pipeline:
    """The same pipeline, on certain nodes."""
    made.settings = replace(
        made.settings,
        placement=sw.settings.PlacementSettings(
            fetch=sw.settings.ActorResources(resources={"fetching": 1}),
            control=sw.settings.ActorResources(resources={control: 1}),
        ),
        spark=sw.settings.SparkSettings(configs={"spark.ray.raydp_spark_executor.actor.resource.spark": "1"}),
    )
    return made


if __name__ == "__main__":
    root, url, control, *how = sys.argv[1:]
    made = on_nodes(job.pipeline(root, url, json.loads(os.environ["STORAGE_OPTIONS"])), control)
    if how == ["large"]:
        made.settings = replace(made.settings, barrier=sw.settings.BarrierSettings(), fetch=sw.settings.FetchSettings())
    else:
        # Half a minute for all files, so that there is a middle.
        made.settings = replace(made.settings, fetch=replace(made.settings.fetch, max_rows_per_second=300))
    made.run()
