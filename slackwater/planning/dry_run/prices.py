"""What requests cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from state.errors import SettingsError

PAGE_NAMES = 1_000
"""How many names a LIST request of S3 returns at most."""

LONG_POLL_S = 20
"""How long a request to SQS waits for a message."""

HOUR_S, DAY_S = 3_600, 86_400


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dollars for a thousand requests.  By default AWS's list prices in us-east-1, for S3 Standard and SQS.

    Args:
        lists: LIST.
        gets: GET and HEAD.
        queue: any request to SQS.
    """

    lists: float = 0.005
    gets: float = 0.0004
    queue: float = 0.0004

    def __post_init__(self) -> None:
        for name in ("lists", "gets", "queue"):
            price = getattr(self, name)
            if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
                raise SettingsError(f"Prices({name}={price!r}): give dollars for a thousand requests, 0 or more")


@dataclass(frozen=True)
class Requests:
    """Numbers of requests; estimates need not be whole.

    Args:
        lists: LIST.
        gets: GET and HEAD.
        queue: to SQS.
    """

    lists: float = 0
    gets: float = 0
    queue: float = 0

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.lists + other.lists, self.gets + other.gets, self.queue + other.queue)

    def dollars(self, prices: Prices = Prices()) -> float:
        """What they cost."""
        return (self.lists * prices.lists + self.gets * prices.gets + self.queue * prices.queue) / 1_000


def idle_queue_requests(pollers: int, seconds: float) -> float:
    """Requests to a queue to which nothing comes: each poller waits for a message, and asks again."""
    return pollers * seconds / LONG_POLL_S
