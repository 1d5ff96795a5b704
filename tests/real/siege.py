"""A pipeline that must keep its promises while its processes are killed and its store loses and damages answers."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import slackwater as sw
from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from tests.real import job, victims
from tests.real.ledger_oracle import LedgerOracle
from tests.real.source_files import encoded

_LIMIT_S = 150.0
_FILES_PER_S = 100.0

MOMENTS_S = (0.0, 0.1, 0.3, 0.7, 1.5)
"""After files have come: they are listed, read, computed and committed, and at the last moment the run is idle."""


@dataclass(frozen=True)
class Kill:
    """One kill: what died, how long after files had come, and how long until those files were committed."""

    kind: str
    after_s: float
    recovery_s: float


class Siege:
    """The job of `job.py` on an S3 server, behind a proxy with faults.  A context manager.

    Args:
        server: where files and root are.
        bucket: a fresh bucket.
        scratch: a directory for logs.
        chance: decides about faults and the content of files.
        faults: the share of requests that fail.
        behind: files of one to three rows that are committed before the first fault and the first kill.
    """

    def __init__(
        self,
        server: S3Server,
        bucket: str,
        scratch: Path,
        chance: random.Random,
        faults: float = 0.01,
        behind: int = 0,
    ) -> None:
        self._server, self._bucket, self._scratch, self._chance = server, bucket, scratch, chance
        self.proxy: FaultProxy = server.fault_proxy(random.Random(chance.random()))
        self._faults = faults
        self.root, self._url = f"s3://{bucket}/root", f"s3://{bucket}/in"
        self.files, self._behind = 0, behind
        self.lives = self.freezes = 0
        self.kills: list[Kill] = []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Siege:
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(error)
            raise
        return self

    def _begin(self) -> None:
        if self._behind:
            self._read_at_once(self._behind)
        self.feed(6)
        self._add_faults()
        self._begin_life()
        self.wait(lambda: self.done() == self.files, "the first files are committed")

    def _read_at_once(self, count: int) -> None:
        """A life in large epochs and without faults, which ends when it has read small files."""
        self.feed(count, rows=(1, 3))
        self._begin_life("at once")
        assert self._process is not None
        limit_s = _LIMIT_S + count / _FILES_PER_S
        assert self._process.wait(limit_s) == 0, f"the job failed:\n{self._log().read_text()}"

    def _add_faults(self) -> None:
        for method in ("GET", "PUT", "LIST"):
            self.proxy.on(method, probability=self._faults).refuse()
            self.proxy.on(method, probability=self._faults / 2).cut()
        self.proxy.on("PUT", probability=self._faults / 2).refuse(applied=True)

    def __exit__(self, *error: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self.proxy.close()

    def feed(self, count: int, rows: tuple[int, int] = (20, 80)) -> None:
        """New files of so many rows, in three formats."""
        for _ in range(count):
            source, kind = list(job.FORMATS.items())[self.files % 3]
            content = [
                {
                    "user": self._chance.randrange(30),
                    "amount": self._chance.randrange(1000) + 0.25,
                    "note": f"n{self._chance.randrange(50)}",
                }
                for _ in range(self._chance.randint(*rows))
            ]
            self._server.put(self._bucket, f"in/{source}/{self.files:06}.{kind}", encoded(kind, content))
            self.files += 1

    def kill(self, kind: str, after_s: float, files: int = 6) -> Kill:
        """Lets files come, kills one process `after_s` later as one more comes, and waits until all are committed."""
        assert self._process is not None
        self.wait(lambda: bool(victims.find(self.pid, kind)), f"there is a {kind}")
        self.feed(files)
        time.sleep(after_s)
        self.feed(1)
        # The run may recover from a refused request in this moment.
        self.wait(lambda: victims.send(self.pid, kind), f"there is a {kind}")
        killed_s = time.monotonic()
        if kind == victims.DRIVER:
            assert self._process.wait() == -signal.SIGKILL
            self._begin_life()
        self.wait(lambda: self.done() == self.files, f"the files after the death of the {kind} are committed")
        self.kills.append(Kill(kind, after_s, time.monotonic() - killed_s))
        return self.kills[-1]

    def freeze(self, kind: str, seconds: float, files: int = 6) -> None:
        """Lets files come, holds one process still for a while, and waits until the files are committed."""
        self.wait(lambda: bool(victims.find(self.pid, kind)), f"there is a {kind}")
        self.feed(files)
        victim = victims.find(self.pid, kind)[-1]
        victim.suspend()
        time.sleep(seconds)
        victim.resume()
        self.freezes += 1
        self.wait(lambda: self.done() == self.files, f"the files are committed after the {kind} was frozen")

    @property
    def pid(self) -> int:
        """Of the driver."""
        assert self._process is not None
        return self._process.pid

    def done(self) -> int:
        """How many files are finished in a committed epoch."""
        try:
            counts = self._store().ledger.count_files()
        except sw.errors.StoreNotFoundError:
            return 0
        return sum(row["files"] for row in counts.to_pylist() if row["status"] == "done")

    def finish(self) -> int:
        """Stops the job gracefully and compares every view at every epoch.  Returns how many epochs that were."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(_LIMIT_S) == 0, self._log().read_text()
        store = self._store()
        files = store.ledger.files()
        assert files["status"].to_pylist() == ["done"] * self.files
        assert len(set(files["path"].to_pylist())) == self.files
        epochs = store.epochs()["epoch"].to_pylist()
        assert epochs == sorted(set(epochs))
        client = self._server.client()

        def read(path: str) -> bytes:
            key = path.removeprefix(f"s3://{self._bucket}/")
            content: bytes = client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            return content

        return LedgerOracle(job.FORMATS, read, self._scratch, job.STORED).check_every_epoch(store, job.VIEWS)

    def report(self) -> str:
        """A line for each kind: how often it died, and the seconds until what had come was committed."""
        lines = ["| killed | times | median s | 90 % within s | worst s |", "|---|---|---|---|---|"]
        for kind in dict.fromkeys(kill.kind for kill in self.kills):
            seconds = sorted(kill.recovery_s for kill in self.kills if kill.kind == kind)
            most = seconds[math.ceil(0.9 * len(seconds)) - 1]
            lines.append(f"| {kind} | {len(seconds)} | {median(seconds):.1f} | {most:.1f} | {seconds[-1]:.1f} |")
        return "\n".join(lines)

    def wait(self, condition: Callable[[], bool], what: str, limit_s: float = _LIMIT_S) -> None:
        """Waits until something is true; fails if the job ends before or it takes too long."""
        assert self._process is not None
        deadline = time.monotonic() + limit_s
        while not condition():
            assert self._process.poll() is None, f"the job ended by itself:\n{self._log().read_text()}"
            assert time.monotonic() < deadline, f"it did not come to be that {what}:\n{self._log().read_text()}"
            time.sleep(0.1)

    def _begin_life(self, how: str = "for ever") -> None:
        self.lives += 1
        with self._log().open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, job.__file__, self.root, self._url, how],
                env={**os.environ, "STORAGE_OPTIONS": json.dumps(self.proxy.storage_options)},
                stdout=log,
                stderr=log,
            )

    def _log(self) -> Path:
        return self._scratch / f"life-{self.lives}.log"

    def _store(self) -> sw.Store:
        return sw.open(self.root, self._server.storage_options)
