"""Cost of finding new objects for a month, by listing and by notifications, at AWS's list prices.

    python -m benchmarks.discovery_cost [--new 1000000] [--relist-s 86400]

Nothing is measured: the table is computed from the numbers of requests, which are exact, and from the prices of S3
Standard and SQS in us-east-1.  The one GET that reads an object is the same either way and is left out, as is the
million requests of SQS that an account has free.
"""

from __future__ import annotations

import argparse
import math

from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table
from slackwater.planning.dry_run.prices import HOUR_S, PAGE_NAMES, Requests, idle_queue_requests

MONTH_S = 30 * 86_400
BATCH = 10
POLLERS = 2
BUDGET_PER_HOUR = 3_600

BUCKETS = (1_000_000, 10_000_000, 100_000_000)
INTERVALS = ((10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"))


def listing(objects: int, interval_s: float) -> Requests:
    """A listing takes a request for each thousand objects of the prefix, new or old."""
    return Requests(lists=MONTH_S / interval_s * math.ceil(objects / PAGE_NAMES))


def notifications(objects: int, new: int, relist_s: float, messages_per_request: int) -> Requests:
    """An event is sent, received and deleted, its object is looked at, and now and then everything is listed."""
    in_and_out = 2 * math.ceil(new / messages_per_request)
    idle = idle_queue_requests(POLLERS, MONTH_S)
    return Requests(lists=listing(objects, relist_s).lists, gets=new, queue=new + in_and_out + idle)


def shortest_interval_s(objects: int) -> float:
    """The shortest interval of listings within the default budget of a source, in seconds."""
    return HOUR_S / BUDGET_PER_HOUR * math.ceil(objects / PAGE_NAMES)


def months(new: int, relist_s: float) -> Table:
    """Dollars a month for each size of a bucket and each way of finding what is new in it."""
    rows = []
    for objects in BUCKETS:
        listed = [_dollars(listing(objects, interval_s).dollars()) for interval_s, _ in INTERVALS]
        told = [_dollars(notifications(objects, new, relist_s, each).dollars()) for each in (BATCH, 1)]
        rows.append(Row(f"{objects:,} objects in the bucket", (*listed, *told)))
    names = [f"listing every {name}" for _, name in INTERVALS]
    columns = (*names, "notifications, full batches", "notifications, one by one")
    return Table(columns, tuple(rows), caption=f"{new:,} new objects a month; dollars a month")


def budget(new: int, relist_s: float) -> Table:
    """The intervals under the default budget of LIST requests, and the intervals at which both ways cost the same."""
    rows = []
    for objects in BUCKETS:
        period_s = shortest_interval_s(objects)
        once = listing(objects, MONTH_S).dollars()
        even_s = MONTH_S * once / notifications(objects, new, relist_s, 1).dollars()
        numbers = _duration(period_s), _dollars(listing(objects, period_s).dollars()), _duration(even_s)
        rows.append(Row(f"{objects:,} objects in the bucket", numbers))
    even = "notifications cost as much as a listing every"
    return Table(("the default budget lists every", "at", even), tuple(rows))


def requests_one_by_one(new: int, relist_s: float) -> Table:
    """Of notifications that come one by one, without listings."""
    told = notifications(0, new, relist_s, 1)
    rows = (
        Row("HEAD", (Number(round(told.gets)), _dollars(Requests(gets=told.gets).dollars()))),
        Row("requests of SQS", (Number(round(told.queue)), _dollars(Requests(queue=told.queue).dollars()))),
    )
    return Table(("in a month", "cost"), rows, caption="Notifications one by one, without listings")


def _dollars(amount: float) -> Number:
    return Number(amount, "$")


def _duration(seconds: float) -> Number:
    return Number(round(seconds / 60), "min") if seconds < HOUR_S else Number(seconds / HOUR_S, "h")


def measure(options: argparse.Namespace) -> Result:
    given = options.new, options.relist_s
    return Result((months(*given), budget(*given), requests_one_by_one(*given)))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--new", type=int, default=1_000_000, help="objects that come in a month")
    arguments.add_argument("--relist-s", type=float, default=86_400, help="between listings beside notifications")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
