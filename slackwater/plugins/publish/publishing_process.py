"""The process that publishes during a run: one thread for each publication.

    stdin    lines of JSON: a `PublishingJob`, then {"epoch": N} for each epoch, {"publish": [...], "places": [...]} for
             publications that are added, and {"end": true} at the end of the run
    stdout   lines of JSON, each a `PublicationReport`

The end of stdin without such a line is the death of the run: the process ends at once, which no table minds.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from slackwater.extensions.table_target import places_of
from slackwater.places.declared_place import DeclaredPlace
from slackwater.places.place_watch import PlaceWatch
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import EpochNews, PublicationLoop, PublicationReport
from slackwater.plugins.publish.targets import Target
from state.clock import SystemClock
from state.location import Location

MODULE = "slackwater.plugins.publish.publishing_process"
_NICER = 10  # the flow comes first
_FORMATS: dict[str, type[Target]] = {each.__name__: each for each in get_args(Target)}


@dataclass(frozen=True)
class PublishingJob:
    """The tables that the process publishes.

    Args:
        root: the root of the run.
        publications: the views and their tables.
        places: all places of the run, as its start has checked them.
    """

    root: Location
    publications: tuple[DeclaredPublication, ...]
    places: tuple[DeclaredPlace, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """With the secrets of the storage options: for a pipe, not for a disk."""
        root = _plain({"url": self.root.url, "storage_options": self.root.storage_options})
        places = [place.to_json() for place in self.places]
        return {"root": root, "publications": publications_to_json(self.publications), "places": places}

    @classmethod
    def of_json(cls, document: dict[str, Any]) -> PublishingJob:
        publications, places = _publications(document["publications"]), document["places"]
        return cls(Location(**document["root"]), publications, tuple(map(DeclaredPlace.of_json, places)))


def publications_to_json(publications: Iterable[DeclaredPublication]) -> list[dict[str, Any]]:
    """Publications in a message, with secrets as in `PublishingJob.to_json`."""
    return [
        {"view": each.view, "format": type(each.target).__name__, "target": _plain(vars(each.target))}
        for each in publications
    ]


def _publications(documents: Iterable[dict[str, Any]]) -> tuple[DeclaredPublication, ...]:
    return tuple(DeclaredPublication(each["view"], _FORMATS[each["format"]](**each["target"])) for each in documents)


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in fields.items()}


def main() -> None:
    """Publishes until the run is over."""
    os.nice(_NICER)
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library may print
    job = PublishingJob.of_json(json.loads(sys.stdin.buffer.readline()))
    news, turn = EpochNews(), threading.Lock()

    def notify(report: PublicationReport) -> None:
        with turn:
            reports.write(json.dumps(report.to_json()) + "\n")
            reports.flush()

    clock, threads = SystemClock(), list[threading.Thread]()

    places = [*job.places]

    def begin(publications: Iterable[DeclaredPublication]) -> None:
        for each in publications:
            declared = places_of([each])
            own = [place for place in places if replace(place, address="") in declared]
            watch = PlaceWatch(own, [place for place in places if place not in own])
            loop = PublicationLoop(job.root, len(threads), each, clock, notify, places=watch)
            threads.append(threading.Thread(target=loop.run, args=(news,), name="publication"))
            threads[-1].start()

    begin(job.publications)
    _follow(news, begin, places)
    for thread in threads:
        thread.join()


def _follow(
    news: EpochNews, begin: Callable[[Iterable[DeclaredPublication]], None], places: list[DeclaredPlace]
) -> None:
    """Passes the news on until the run is over."""
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):
            break  # the run died while it wrote it
        message = json.loads(line)
        if "end" in message:
            news.end()
            return
        if "publish" in message:
            places += map(DeclaredPlace.of_json, message["places"])
            begin(_publications(message["publish"]))
        else:
            news.notify(message["epoch"])
    os._exit(0)


if __name__ == "__main__":
    main()
