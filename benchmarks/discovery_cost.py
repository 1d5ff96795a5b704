"""What it costs in a month to find new objects, by listing and by notifications, at AWS's list prices.

    python -m benchmarks.discovery_cost [--new 1000000] [--relist-s 86400]

Nothing is measured: the table is computed from the numbers of requests, which are exact, and from the prices of S3
Standard and SQS in us-east-1.  The one GET that reads an object is the same either way and is left out, as is the
million requests of SQS that an account has free.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

LIST_DOLLARS = 0.005 / 1_000
HEAD_DOLLARS = 0.0004 / 1_000
SQS_DOLLARS = 0.40 / 1_000_000

MONTH_S = 30 * 86_400
HOUR_S = 3_600
PAGE = 1_000
BATCH = 10
LONG_POLL_S = 20
POLLERS = 2
BUDGET_PER_HOUR = 3_600

BUCKETS = (1_000_000, 10_000_000, 100_000_000)
INTERVALS = ((10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"))


@dataclass(frozen=True)
class Requests:
    """Of one month."""

    lists: float = 0
    heads: float = 0
    sqs: float = 0

    @property
    def dollars(self) -> float:
        return self.lists * LIST_DOLLARS + self.heads * HEAD_DOLLARS + self.sqs * SQS_DOLLARS


def listing(objects: int, interval_s: float) -> Requests:
    """A listing takes a request for each thousand objects of the prefix, new or old."""
    return Requests(lists=MONTH_S / interval_s * math.ceil(objects / PAGE))


def notifications(objects: int, new: int, relist_s: float, messages_per_request: int) -> Requests:
    """An event is sent, received and deleted, its object is looked at, and now and then everything is listed."""
    in_and_out = 2 * math.ceil(new / messages_per_request)
    # A poller waits for a message, and asks again when none has come.
    idle = POLLERS * MONTH_S / LONG_POLL_S
    return Requests(lists=listing(objects, relist_s).lists, heads=new, sqs=new + in_and_out + idle)


def shortest_interval_s(objects: int) -> float:
    """How often a prefix is listed at most within the budget of a source that says nothing of it."""
    return HOUR_S / BUDGET_PER_HOUR * math.ceil(objects / PAGE)


def dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount < 100 else f"${amount:,.0f}"


def duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < HOUR_S else f"{seconds / HOUR_S:.1f} h"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def print_months(new: int, relist_s: float) -> None:
    """Dollars a month for each size of a bucket and each way of finding what is new in it."""
    names = [f"listing every {name}" for _, name in INTERVALS]
    print(row("objects in the bucket", *names, "notifications, full batches", "notifications, one by one"))
    print("|---" * (len(INTERVALS) + 3) + "|")
    for objects in BUCKETS:
        listed = [dollars(listing(objects, interval_s).dollars) for interval_s, _ in INTERVALS]
        told = [dollars(notifications(objects, new, relist_s, each).dollars) for each in (BATCH, 1)]
        print(row(f"{objects:,}", *listed, *told))


def print_budget(new: int, relist_s: float) -> None:
    """What the default budget of LIST requests makes of it, and where the ways cost the same."""
    budget, even = "the default budget lists every", "notifications cost as much as a listing every"
    print(row("objects in the bucket", budget, "at", even))
    print("|---|---|---|---|")
    for objects in BUCKETS:
        period_s = shortest_interval_s(objects)
        once = listing(objects, MONTH_S).dollars
        even_s = MONTH_S * once / notifications(objects, new, relist_s, 1).dollars
        print(row(f"{objects:,}", duration(period_s), dollars(listing(objects, period_s).dollars), duration(even_s)))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--new", type=int, default=1_000_000, help="objects that come in a month")
    arguments.add_argument("--relist-s", type=float, default=86_400, help="between listings beside notifications")
    options = arguments.parse_args()
    new = options.new
    print(f"{new:,} new objects a month; dollars a month")
    print()
    print_months(new, options.relist_s)
    print()
    print_budget(new, options.relist_s)
    print()
    told = notifications(0, new, options.relist_s, 1)
    looked, passed = dollars(told.heads * HEAD_DOLLARS), dollars(told.sqs * SQS_DOLLARS)
    print(f"one by one, without listings: {told.heads:,.0f} HEAD {looked}, {told.sqs:,.0f} requests of SQS {passed}")


if __name__ == "__main__":
    main()
