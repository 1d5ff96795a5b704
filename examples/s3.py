"""A bucket that fills up, an append view and an aggregate, while the program does something else.

The program starts an S3 server of its own.  For a real bucket, leave the server out: without `storage_options` the
usual AWS variables apply.
"""

import json
import sys

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server


def event(number: int) -> str:
    return json.dumps({"id": number, "user": f"user-{number % 7}", "amount": number % 100})


def main() -> None:
    with S3Server() as server:
        server.create_bucket("events")
        server.create_bucket("lake")
        pipeline = sw.Pipeline("events", root="s3://lake/events", storage_options=server.storage_options)
        pipeline.source(
            "events",
            "s3://events",
            format="json",
            pattern="**/*.json",
            schema="id bigint, user string, amount bigint",
            discovery=sw.Listing(interval_s=0.5),
        )
        pipeline.view("by_user", "SELECT user, count(*) AS events, sum(amount) AS amount FROM events GROUP BY user")
        pipeline.view("large", "SELECT id, user, amount FROM events WHERE amount >= 95")

        with pipeline.start() as run:
            for hour in range(24):
                lines = [event(hour * 1000 + number) for number in range(1000)]
                server.put("events", f"2024-01-01/{hour:02d}.json", "\n".join(lines).encode())
            run.wait(until="caught_up")
            report = run.stop()
        print(report)

        store = sw.open("s3://lake/events", storage_options=server.storage_options)
        snapshot = store.snapshot()
        print(snapshot.view("by_user").to_pandas())
        print(f"{snapshot.view('large').to_arrow().num_rows:,} large events at epoch {snapshot.epoch}")
        print(store.ledger.why("s3://events/2024-01-01/07.json").text)
        if report.rows != 24_000:
            sys.exit(f"{report.rows:,} rows instead of 24,000")


if __name__ == "__main__":
    main()
