"""A proxy that behaves as a store does on a bad day, on demand or by chance."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from slackwater.testing.proxies.request_log import RequestLog
from slackwater.testing.proxies.reverse_proxy import Exchange, Request

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

LIST = "LIST"


@dataclass(frozen=True)
class Fault:
    """The fault of one request.

    Args:
        kind: `refuse` (503 SlowDown), `fill` (507 InsufficientStorage), `deny` (403 InvalidObjectState), `cut`,
            `reset`, `slow` or `freeze`.
        applied: whether the server does the request first, so that only its answer is lost.
        delay_s: of a slow answer.
    """

    kind: str
    applied: bool = False
    delay_s: float = 0.0


class FaultRule:
    """A rule with the requests that a fault meets; its methods set the fault.  Made by `FaultProxy.on`."""

    def __init__(self, method: str, pattern: str, probability: float, skip: int, times: int | None) -> None:
        self._method, self._pattern = method, pattern
        self._probability, self._skip, self._left = probability, skip, times
        self._fault: Fault | None = None

    def refuse(self, *, applied: bool = False) -> None:
        """503 SlowDown; `applied` after the server has done what it was asked."""
        self._fault = Fault("refuse", applied)

    def fill(self) -> None:
        """507 InsufficientStorage: the server has no room, and does nothing."""
        self._fault = Fault("fill")

    def deny(self) -> None:
        """403 InvalidObjectState, as for an object in an archive."""
        self._fault = Fault("deny")

    def cut(self) -> None:
        """The server does the request, and the connection ends within the answer."""
        self._fault = Fault("cut", applied=True)

    def reset(self, *, applied: bool = False) -> None:
        """The connection is dropped without an answer."""
        self._fault = Fault("reset", applied)

    def slow(self, delay_s: float) -> None:
        """The request is done and answered, later."""
        self._fault = Fault("slow", delay_s=delay_s)

    def freeze(self, *, applied: bool = False) -> None:
        """Nothing comes until `FaultProxy.heal`; then the server does what it was asked, however late."""
        self._fault = Fault("freeze", applied)

    def meet(self, request: Request, random: Random) -> Fault | None:
        """The fault for this request, if it is one of the rule's and its turn has come."""
        if self._fault is None or self._left == 0 or not self._matches(request):
            return None
        if self._skip:
            self._skip -= 1
            return None
        if self._probability < 1 and random.random() >= self._probability:
            return None
        if self._left is not None:
            self._left -= 1
        return self._fault

    def _matches(self, request: Request) -> bool:
        method = LIST if request.is_list else request.method
        key = request.query.get("prefix", "") if request.is_list else request.key
        return self._method in ("*", method) and fnmatchcase(key, self._pattern)


class FaultProxy(RequestLog):
    """An endpoint in front of an S3 server that loses, delays and damages what passes, as its rules say.

    Without rules it is a `RequestLog`.  With them, each request in the log has the fault that it met, so that a test
    can check it.  Made by `S3Server.fault_proxy`.

    Args:
        host: of the server behind.
        port: of the server behind.
        options_for: the storage options for an endpoint.
        random: decides where a rule has a probability, and where an answer is cut.

    Example:
        >>> proxy = server.fault_proxy(random.Random(7))
        >>> proxy.on("GET", "in/*", probability=0.05).cut()
        >>> proxy.on("PUT", "*.manifest", times=1).refuse(applied=True)
        >>> proxy.on("LIST").slow(2.0)
    """

    def __init__(self, host: str, port: int, options_for: Callable[[str], dict[str, str]], random: Random) -> None:
        self._random = random
        self._rules: list[FaultRule] = []
        self._deciding = threading.Lock()
        self._healed = threading.Event()
        self._closed = threading.Event()
        super().__init__(host, port, options_for)

    def on(
        self, method: str, pattern: str = "*", *, probability: float = 1.0, skip: int = 0, times: int | None = None
    ) -> FaultRule:
        """A new rule; the first of the rules that meets a request decides.

        Args:
            method: an HTTP method, `LIST` for a page of a listing (which is no `GET` here), or `*` for all.
            pattern: of the key below the bucket, of the prefix for a listing; `*` crosses directories.
            probability: of the fault, for each request that matches.
            skip: the number of matching requests to leave alone first.
            times: the maximum number of faults; None for no limit.
        """
        rule = FaultRule(method, pattern, probability, skip, times)
        with self._deciding:
            self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """Removes the rules; frozen and slow requests continue at once."""
        with self._deciding:
            self._rules.clear()
            healed, self._healed = self._healed, threading.Event()
        healed.set()

    def met(self, kind: str) -> list[Request]:
        """The requests that met one kind of fault."""
        return [request for request in self.requests if request.fault == kind]

    def close(self) -> None:
        self._closed.set()
        self.heal()
        super().close()

    def handle(self, exchange: Exchange) -> None:
        with self._deciding:
            met = (rule.meet(exchange.request_seen, self._random) for rule in self._rules)
            fault = next((fault for fault in met if fault is not None), None)
            share, healed = self._random.random(), self._healed
        if fault is None:
            super().handle(exchange)
            return
        if fault.applied:
            exchange.apply()
        self._note(replace(exchange.request_seen, fault=fault.kind))
        if fault.kind == "refuse":
            exchange.refuse(503, "SlowDown")
        elif fault.kind == "fill":
            exchange.refuse(507, "InsufficientStorage")
        elif fault.kind == "deny":
            exchange.refuse(403, "InvalidObjectState")
        elif fault.kind == "cut":
            exchange.cut(share)
        elif fault.kind == "reset":
            exchange.reset()
        else:
            healed.wait(fault.delay_s if fault.kind == "slow" else None)
            if not self._closed.is_set():
                exchange.apply()
                exchange.answer()
