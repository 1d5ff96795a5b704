"""The pipeline of the kill tests, as a program of its own: `python job.py ROOT BUCKET_URL [HOW]`.

Without more it ends when it has caught up; so it does with `all`, which declares also the views of a backfill.  With
`for ever` it does not end, and with `changing SEED` it adds and drops those all the time.  The storage options come in
the environment.

Small pieces, small epochs and little credit make many epochs out of little data, and files that are half read at a
barrier.  With `at once` they are of the usual size, and it ends when it has caught up.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any, NoReturn

import slackwater as sw

GRAPH = {
    "user_visits": "SELECT user, count(*) AS n FROM visits GROUP BY user",
    "note_visits": "SELECT note, count(*) AS n FROM visits GROUP BY note",
    "nothing": "SELECT sum(n) AS n FROM (SELECT n FROM user_visits UNION ALL SELECT -n AS n FROM note_visits)",
    "sizes": "SELECT n, count(*) AS users, min(user) AS least FROM user_visits GROUP BY n",
}
"""Two aggregations of one source, a view over both that is always zero, and an aggregation of an aggregation."""


def over_sources(query: str) -> str:
    """The query of a view of the graph, over sources alone."""
    for name, inner in GRAPH.items():
        query = query.replace(f"FROM {name}", f"FROM ({inner})")
    return query


VIEWS = {
    "by_user": "SELECT user, count(*) AS n, sum(amount) AS total, avg(amount) AS mean, min(note) AS first_note "
    "FROM orders GROUP BY user",
    "large": "SELECT user, amount, note FROM clicks WHERE amount > 500",
    "everything": "SELECT kind, count(*) AS n, max(amount) AS largest FROM "
    "(SELECT 'order' AS kind, amount FROM orders UNION ALL SELECT 'click' AS kind, amount FROM clicks "
    "UNION ALL SELECT 'visit' AS kind, amount FROM visits) GROUP BY kind",
    "levels": "SELECT n, count(*) AS users, max(total) AS most FROM "
    "(SELECT user, count(*) AS n, max(amount) AS total FROM clicks GROUP BY user) GROUP BY n",
    "busy": "SELECT user, count(*) AS n FROM visits GROUP BY user HAVING count(*) >= 10",
    "met": "SELECT o.user, count(*) AS n, max(v.amount) AS most FROM orders o JOIN visits v "
    "ON o.user = v.user AND o.note = v.note GROUP BY o.user",
    "unseen": "SELECT user, note, amount FROM clicks c "
    "WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.user = c.user AND v.note = c.note)",
    **{name: over_sources(query) for name, query in GRAPH.items()},
}
"""What the views compute, over sources; `busy` is declared as a function, and the graph over views."""

LATE_VIEWS = {
    "by_note": "SELECT note, count(*) AS n, max(amount) AS largest FROM clicks GROUP BY note",
    "notes": "SELECT user, count(DISTINCT note) AS notes, sum(amount) AS total FROM orders GROUP BY user",
    "small": "SELECT user, note FROM visits WHERE amount < 500",
    "users": "SELECT count(*) AS users FROM (SELECT user FROM orders GROUP BY user)",
    "both": "SELECT o.user, o.amount, c.amount AS other FROM orders o FULL JOIN clicks c "
    "ON o.user = c.user AND o.note = c.note AND o.amount < c.amount",
    "absent": "SELECT DISTINCT user FROM orders WHERE user NOT IN (SELECT user FROM visits)",
}
"""Views of a backfill, over stored rows and over files: an aggregation within, a join, and one that is recomputed."""

SCHEMA = "user bigint, amount double, note string"
FORMATS = {"orders": "parquet", "clicks": "csv", "visits": "json"}
SHARDED = "clicks"
"""The source whose names are in shards, in a job that does not end."""
STORED = ("orders", "visits")
"""The sources that are materialized."""


SMALL = sw.Settings(
    barrier=sw.settings.BarrierSettings(interval_s=0.2, max_epoch_bytes=24 * 1024),
    # Kills come thick and fast, and are nobody's fault.
    recovery=sw.settings.RecoverySettings(suspicious_within_s=0.1),
    fetch=sw.settings.FetchSettings(piece_bytes=1024, max_bytes_in_flight=32 * 1024, max_files_waiting=60),
)


def pipeline(
    root: str, url: str, options: dict[str, Any], name_actors: int = 1, settings: sw.Settings = SMALL
) -> sw.Pipeline:
    made = sw.Pipeline("killed", root, storage_options=options, settings=settings)
    for source, kind in FORMATS.items():
        schema = SCHEMA if kind != "parquet" else None
        made.source(
            source,
            f"{url}/{source}",
            format=kind,
            schema=schema,
            discovery=sw.Listing(interval_s=0.5, name_actors=name_actors if source == SHARDED else 1),
            materialize=source in STORED,
        )
    for name in ("by_user", "large", "everything", "levels", "met", "unseen"):
        made.view(name, VIEWS[name])
    for name, query in GRAPH.items():
        made.view(name, query)

    @made.view
    def busy(visits):  # type: ignore[no-untyped-def]
        from pyspark.sql import functions

        return visits.groupBy("user").agg(functions.count("*").alias("n")).where("n >= 10")

    return made


def change_views(run: sw.Run, chance: random.Random) -> NoReturn:
    """Adds and drops views until somebody kills the process."""
    there: set[str] = set()
    while True:
        name = chance.choice(sorted(LATE_VIEWS))
        if name in there:
            run.drop_view(name)
        else:
            # A view that an earlier life has left is stopped: with its rows of now it takes that one's place.
            run.add_view(name, LATE_VIEWS[name], on_full="allow")
        there ^= {name}
        run.wait(timeout_s=chance.choice([0.0, 0.3, 1.5]))


if __name__ == "__main__":
    how = sys.argv[3:]
    shards = 2 if how in (["for ever"], ["at once"]) else 1
    settings = sw.Settings() if how == ["at once"] else SMALL
    made = pipeline(sys.argv[1], sys.argv[2], json.loads(os.environ["STORAGE_OPTIONS"]), shards, settings)
    if how[:1] == ["changing"]:
        with made.start() as started:
            change_views(started, random.Random(how[1]))
    if how == ["all"]:
        for name, query in LATE_VIEWS.items():
            made.view(name, query, on_full="allow")
    made.run(until=None if how == ["for ever"] else "caught_up")
