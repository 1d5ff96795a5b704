"""Events of a queue: delay from file to view, events a second, and listings at rest.

    python -m benchmarks.notifications [--files 60] [--events 10000] [--rest 30]

S3 is SeaweedFS and SQS is moto's server, both on this machine.  The same files are found by listings every 0.1 s
beside, in a run of its own.  moto takes more than 100 ms for a request under load, so that the list actor's speed is
measured with recorded messages; what they name is looked at in SeaweedFS.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import deque
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime

import slackwater as sw
from actors.hosting.event_source import EventSource
from actors.listing.instructions import FindDeleted, ReadPage
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import ListedState
from actors.listing.request_budget import RequestBudget
from actors.names.seen_index import SeenIndex
from actors.notifications.instructions import DeleteMessages, LookAt, Receive
from actors.notifications.message_tracker import QueueMessage
from actors.objects.object_store import ObjectStore
from actors.protocol.barrier import Barrier, BarrierKind
from actors.protocol.instructions import Instruction
from actors.sources.discovery import Notifications
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from benchmarks.command import run_benchmark
from benchmarks.events import QUERY, event_files
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.testing.servers import s3_events
from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from state.epoch import EpochPair
from state.location import Location

_WARM_FILES = 10
_PER_MESSAGE = 10
_DAY_S = 86_400.0


def measure(options: argparse.Namespace) -> Result:
    with S3Server() as s3, SqsServer() as sqs:
        throughput = _throughput(s3, options.events)
        told = sqs.create_queue("told")
        notifications = sw.Notifications(queue_url=told, region=sqs.options["region"], endpoint=sqs.options["endpoint"])
        events, rest = _freshness("events", s3, options.files, notifications, sqs, told, options.rest)
        often = sw.Listing(interval_s=0.1, max_requests_per_hour=72_000)
        listings, _ = _freshness("listings every 0.1 s", s3, options.files, often)
    caption = f"From the event to the commit of the file's rows in a view, {options.files} files, one at a time"
    fresh = []
    for name, found in (("events", events), ("listings every 0.1 s", listings)):
        cuts = statistics.quantiles(found, n=100, method="inclusive")
        target = Target(0.5, "s") if name == "events" else None
        fresh.append(Row(name, (Number(cuts[49], "s"), Number(cuts[94], "s")), target=target))
    at_rest = Row(f"LIST requests in {options.rest:.0f} s at rest", (Number(rest),), target=Target(0))
    return Result((throughput, Table(("p50", "p95"), tuple(fresh), caption=caption), Table(("count",), (at_rest,))))


def _freshness(
    name: str,
    s3: S3Server,
    count: int,
    discovery: sw.Notifications | sw.Listing,
    sqs: SqsServer | None = None,
    queue: str = "",
    rest_s: float = 0.0,
) -> tuple[list[float], int]:
    """Seconds of each file, and the LIST requests at rest."""
    bucket = s3.create_bucket(name.split()[0])
    client = s3.client()
    seconds: list[float] = []
    listed = 0
    with closing(s3.proxy()) as proxy:
        pipeline = sw.Pipeline("bench", f"s3://{bucket}/root", storage_options=s3.storage_options)
        url = f"s3://{bucket}/in"
        pipeline.source("events", url, format="parquet", discovery=discovery, storage_options=proxy.storage_options)
        pipeline.view("by_user", QUERY)
        with pipeline.start() as run:
            for number, content in enumerate(event_files(_WARM_FILES + count, 100)):
                key = f"in/{number:06}.parquet"
                etag = client.put_object(Bucket=bucket, Key=key, Body=content)["ETag"]
                started = time.perf_counter()
                if sqs is not None:
                    sqs.send(queue, s3_events.created(bucket, key, etag, len(content)))
                while run.report().files <= number:
                    run.wait(timeout_s=0.002)
                if number >= _WARM_FILES:
                    seconds.append(time.perf_counter() - started)
            if rest_s:
                before = sum(request.is_list for request in proxy.requests)
                time.sleep(rest_s)
                listed = sum(request.is_list for request in proxy.requests) - before
    return seconds, listed


def _throughput(s3: S3Server, count: int) -> Table:
    bucket = s3.create_bucket("recorded")
    client = s3.client()
    keys = [f"in/{number:07}.csv" for number in range(count)]
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=b"x\n1\n")
    messages: deque[QueueMessage] = deque()
    for start in range(0, count, _PER_MESSAGE):
        bodies = [s3_events.created(bucket, key, '"e"', 4) for key in keys[start : start + _PER_MESSAGE]]
        messages.append(QueueMessage(f"m{start}", f"r{start}", s3_events.together(*bodies), 0.0))
    location = Location(f"s3://{bucket}/in", s3.storage_options)
    discovery = Notifications(queue_url="https://recorded/1/queue")
    source = SourceDefinition(name="s", location=location, format=sw.Csv(), discovery=discovery)
    cpu_s = time.process_time()
    started = time.perf_counter()
    asyncio.run(_Recorded(source, discovery, messages).run(count))
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu_s
    numbers = Number(count / seconds, "/s"), Number(1e6 * cpu_s / count, "µs")
    row = Row("events, with a HEAD for each", numbers, target=Target(1_000, "/s", at_least=True))
    return Table(
        ("speed", "CPU of each"), (row,), caption=f"{count:,} recorded events, ten in a message, by one list actor"
    )


class _Recorded:
    """A list executor whose messages were recorded, and whose looks are real."""

    def __init__(self, source: SourceDefinition, discovery: Notifications, messages: deque[QueueMessage]) -> None:
        path_filter = PathFilter("**")
        self._events = EventSource(source, discovery, ObjectStore(source.location), source.location)
        self._messages = messages
        self._executor = ListExecutor(
            actor="list-s",
            source="s",
            url=source.location.url,
            path_filter=path_filter,
            pace=ListingPace(_DAY_S, RequestBudget(None), time.monotonic() + _DAY_S),
            seen=SeenIndex(),
            schema_known=True,
            must_settle=False,
            events=self._events.watch(path_filter),
            must_list=False,
            listed=ListedState(datetime.now(UTC)),
        )

    async def run(self, count: int) -> None:
        """Until all are handed on, and their messages deleted."""
        epoch, deleted = 1, 0
        todo: deque[Instruction] = deque(self._executor.on_barrier(self._barrier(0), time.monotonic()))
        while deleted < count // _PER_MESSAGE:
            if not todo:
                todo += self._executor.on_barrier(self._barrier(epoch), time.monotonic())
                todo += self._executor.on_committed(epoch, time.monotonic())
                epoch += 1
                continue
            instruction = todo.popleft()
            if isinstance(instruction, DeleteMessages):
                deleted += len(instruction.messages)
            todo += await self._answer(instruction)

    async def _answer(self, instruction: Instruction) -> Iterable[Instruction]:
        assert not isinstance(instruction, (ReadPage, FindDeleted)), "nothing is listed"
        if isinstance(instruction, LookAt):
            found = await self._events.look_at(instruction.paths)
            return self._executor.on_looked(found, time.monotonic())
        if isinstance(instruction, Receive) and self._messages:
            taken = [self._messages.popleft() for _ in range(min(_PER_MESSAGE, len(self._messages)))]
            return self._executor.on_messages(instruction, taken, None, time.monotonic())
        return []

    def _barrier(self, prev: int) -> Barrier:
        kind = BarrierKind.CHECKPOINT if prev else BarrierKind.INITIAL
        return Barrier(EpochPair(prev, prev + 1), kind, list_budget={"s": 20_000})


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=60)
    arguments.add_argument("--events", type=int, default=10_000)
    arguments.add_argument("--rest", type=float, default=30.0)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
