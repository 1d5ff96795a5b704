"""The pipeline of the kill tests with notifications: `python notified_job.py ROOT BUCKET_URL QUEUE_URL REGION`.

It ends when it has caught up.  The storage options, and where the queue answers, come in the environment.
"""

from __future__ import annotations

import json
import os
import sys

import slackwater as sw

QUERY = "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user"

if __name__ == "__main__":
    root, url, queue_url, region = sys.argv[1:]
    made = sw.Pipeline("told", root, settings=sw.Settings(fetch=sw.settings.FetchSettings(max_files_per_epoch=10)))
    made.source(
        "events",
        url,
        format="parquet",
        schema="user bigint, amount double",
        discovery=sw.Notifications(
            queue_url=queue_url, region=region, endpoint=os.environ["QUEUE_ENDPOINT"], visibility_s=4.0
        ),
        storage_options=json.loads(os.environ["STORAGE_OPTIONS"]),
    )
    made.view("totals", QUERY)
    made.run(until="caught_up")
