"""The process that publishes beside a run: one thread for each publication.

    stdin    a pickled `PublishingJob`, then lines of JSON: {"epoch": N} and at the end {"end": true}
    stdout   lines of JSON, each a `PublicationReport`

The end of stdin without such a line is the death of the run: the process ends at once, which no table minds.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from dataclasses import dataclass

from slackwater.publishing.declaration import DeclaredPublication
from slackwater.publishing.publication_loop import EpochNews, PublicationLoop, PublicationReport
from state.clock import SystemClock
from state.location import Location

MODULE = "slackwater.publishing.publishing_process"
_NICER = 5  # the flow comes first


@dataclass(frozen=True)
class PublishingJob:
    """What the process publishes.

    Args:
        root: the root of the run.
        publications: the views and their tables.
    """

    root: Location
    publications: tuple[DeclaredPublication, ...]


def main() -> None:
    """Publishes until the run is over."""
    os.nice(_NICER)
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library may print
    job: PublishingJob = pickle.load(sys.stdin.buffer)
    news, turn = EpochNews(), threading.Lock()

    def tell(report: PublicationReport) -> None:
        with turn:
            reports.write(json.dumps(report.to_json()) + "\n")
            reports.flush()

    clock = SystemClock()
    loops = [PublicationLoop(job.root, at, each, clock, tell) for at, each in enumerate(job.publications)]
    threads = [threading.Thread(target=loop.run, args=(news,), name="publication") for loop in loops]
    for thread in threads:
        thread.start()
    _follow(news)
    for thread in threads:
        thread.join()


def _follow(news: EpochNews) -> None:
    """Passes the news on until the run is over."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "end" in message:
            news.end()
            return
        news.tell(message["epoch"])
    os._exit(0)


if __name__ == "__main__":
    main()
