"""Nodes and actors of a cluster as JSON: `python node_look.py`, with the cluster in the environment.

`nodes`: name → bytes that its object store has ever held, and how many objects; `actors`: class → the names of the
nodes where its living actors are.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import ray
from ray._private.internal_api import node_stats
from ray.util.state import list_actors

from slackwater.testing.servers.ray_cluster import NODE_RESOURCE

NAMED = ("head", "spark", "one", "two")


def _name(resources: dict[str, float]) -> str:
    return next(name for name in NAMED if resources.get(name) == NODE_RESOURCE)


def look() -> dict[str, Any]:
    """See the module."""
    names, held = {}, {}
    for node in ray.nodes():
        if node["Alive"]:
            names[node["NodeID"]] = name = _name(node["Resources"])
            store = node_stats(
                node["NodeManagerAddress"], node["NodeManagerPort"], include_memory_info=False
            ).store_stats
            held[name] = (store.cumulative_created_bytes, store.cumulative_created_objects)
    actors: dict[str, list[str]] = {}
    for actor in list_actors(filters=[("state", "=", "ALIVE")], limit=1_000):
        actors.setdefault(actor.class_name.rsplit(".")[-1], []).append(names.get(actor.node_id, "?"))
    return {"nodes": held, "actors": {each: sorted(where) for each, where in actors.items()}}


if __name__ == "__main__":
    ray.init(logging_level="error", log_to_driver=False)
    sys.stdout.write(json.dumps(look()) + "\n")
