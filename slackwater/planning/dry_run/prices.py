"""Prices of requests, and numbers of requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from state.errors import SettingsError

PAGE_NAMES = 1_000
"""The maximum number of names in the answer to a LIST request of S3."""

LONG_POLL_S = 20
"""The time that a request to SQS waits for a message, in seconds."""

HOUR_S, DAY_S = 3_600, 86_400


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in dollars for a thousand requests.  Default: AWS's list prices in us-east-1, for S3 Standard and SQS.

    Args:
        lists: the price of LIST requests.
        gets: the price of GET and HEAD requests.
        queue: the price of requests to SQS.
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
    """Numbers of requests; an estimate may have a fraction.

    Args:
        lists: the number of LIST requests.
        gets: the number of GET and HEAD requests.
        queue: the number of requests to SQS.
    """

    lists: float = 0
    gets: float = 0
    queue: float = 0

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.lists + other.lists, self.gets + other.gets, self.queue + other.queue)

    def dollars(self, prices: Prices = Prices()) -> float:
        """The price of the requests, in dollars."""
        return (self.lists * prices.lists + self.gets * prices.gets + self.queue * prices.queue) / 1_000


def idle_queue_requests(pollers: int, seconds: float) -> float:
    """The number of requests to an empty queue: each poller repeats its long poll."""
    return pollers * seconds / LONG_POLL_S
