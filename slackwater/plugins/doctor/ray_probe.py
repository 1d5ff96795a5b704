"""Probe of Ray: connects to it, or starts it, as a run does, and runs a task.

python -m slackwater.plugins.doctor.ray_probe NAMESPACE fast|plain [ADDRESS]
"""

from __future__ import annotations

import json
import sys

from actors.hosting.ray_session import connect_ray, disconnect_ray, tried_task


def main() -> None:
    """Prints the resources of the cluster."""
    namespace, start, *address = sys.argv[1:]
    connect_ray(address=address[0] if address else None, num_cpus=1, namespace=namespace, fast_start=start == "fast")
    found = tried_task()
    disconnect_ray()
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
