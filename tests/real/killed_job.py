"""A pipeline over 210 files in a process of its own, for tests that kill it; DuckDB checks every epoch."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real import job
from tests.real.ledger_oracle import LedgerOracle
from tests.real.source_files import encoded

Moment = Callable[[int, int], bool]
"""True for the numbers of finished and of half-read files at which the process is killed."""

FILES = 210
START_LIMIT_S = 300.0


def fill(s3: S3Server, bucket: str) -> None:
    """Files of 20 to 80 rows, in three formats."""
    rng = random.Random(1)
    for number in range(FILES):
        source, kind = list(job.FORMATS.items())[number % 3]
        count = rng.randint(20, 80)
        rows = [
            {"user": rng.randrange(30), "amount": rng.randrange(1000) + 0.25, "note": f"n{rng.randrange(50)}"}
            for _ in range(count)
        ]
        s3.put(bucket, f"in/{source}/{number:04}.{kind}", encoded(kind, rows))


class Job:
    """One life of the pipeline's process."""

    def __init__(self, root: str, url: str, options: dict[str, str], log: Path, *how: str) -> None:
        self._root, self._options = root, options
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, job.__file__, root, url, *how],
            env={**os.environ, "STORAGE_OPTIONS": json.dumps(options)},
            stdout=self._log,
            stderr=self._log,
        )

    def kill_when(self, reached: Callable[[int, int], bool]) -> None:
        """Kills the process when `reached(finished files, half-read files)`; fails if the process ended before."""
        self._wait(lambda: reached(*self._files()))
        self._process.send_signal(signal.SIGKILL)
        assert self._process.wait() == -signal.SIGKILL, "the run was over before it could be killed"

    def kill_while_a_view_catches_up(self, done: int) -> None:
        """Kills the process during a backfill, after at least `done` files are finished."""
        self._wait(
            lambda: self._files()[0] >= done and bool(sw.open(self._root, self._options).views.backfills().num_rows)
        )
        self._process.send_signal(signal.SIGKILL)
        assert self._process.wait() == -signal.SIGKILL, "the run was over before it could be killed"

    def finish(self) -> None:
        """Waits for the end of the run."""
        assert self._process.wait(timeout=START_LIMIT_S) == 0, Path(self._log.name).read_text()

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _files(self) -> tuple[int, int]:
        try:
            files = sw.open(self._root, self._options).ledger.files()
        except sw.errors.StoreNotFoundError:
            return 0, 0
        statuses = files["status"].to_pylist()
        return statuses.count("done"), statuses.count("reading")

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while not condition():
            assert self._process.poll() is None, "the run ended by itself:\n" + Path(self._log.name).read_text()
            assert time.monotonic() < deadline, "nothing happened:\n" + Path(self._log.name).read_text()
            time.sleep(0.25)


def killed_at(s3: S3Server, bucket: str, tmp_path: Path, moments: Sequence[Moment]) -> tuple[sw.Store, int]:
    """Runs the pipeline to its end over one kill per moment; checks every epoch; returns the store and the epochs."""
    fill(s3, bucket)
    root, url, options = f"s3://{bucket}/root", f"s3://{bucket}/in", s3.storage_options
    for number, moment in enumerate([*moments, None]):
        life = Job(root, url, options, tmp_path / f"life-{number}.log")
        try:
            if moment is None:
                life.finish()
            else:
                life.kill_when(moment)
        finally:
            life.end()
    store = sw.open(root, options)
    return store, checked(store, s3, bucket, tmp_path)


def checked(store: sw.Store, s3: S3Server, bucket: str, tmp_path: Path) -> int:
    """Compares every view at every epoch, and requires every file to be done.  Returns the number of epochs."""
    client = s3.client()

    def read(path: str) -> bytes:
        content: bytes = client.get_object(Bucket=bucket, Key=path.removeprefix(f"s3://{bucket}/"))["Body"].read()
        return content

    oracle = LedgerOracle(job.FORMATS, read, tmp_path, job.STORED)
    epochs = oracle.check_every_epoch(store, {**job.VIEWS, **job.LATE_VIEWS})
    files = store.ledger.files()
    assert files["status"].to_pylist() == ["done"] * FILES
    assert len(set(files["path"].to_pylist())) == FILES
    return epochs


def in_the_middle(done: int, reading: int) -> bool:
    return done > FILES // 3 and reading > 0
