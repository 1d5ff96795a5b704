"""Kills processes of a run that moves its files and publishes its views, and looks for what is lost or wrong.

Files come and are moved when their rows are committed and published, other files are corrected, and six tables follow
three views.  `--kills 50` kills a process that often: an actor, a Spark executor, the Spark application, the process
that publishes, or the driver.  With each kill, and at the end:

* each file is at its place or in the archive, with its bytes, and its rows are in the views once;
* each table has exactly the rows of its view at the epoch that it names;
* no file of anybody else has changed, beside places, inside them and inside tables.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.testing.servers.s3_server import S3Server
from tests.real import keeping_job, victims

_BUCKET = "keeping"
_FAULTS = 0.005
_LIMIT_S = 300.0
_USERS = 12
_PRICES = 8
# A death of Spark or of the driver takes ten times as long as that of an actor.
_KINDS = (
    *("list", "dispatcher", "fetch", "merger", "coordinator", "spark executor") * 2,
    *(victims.PUBLISHING,) * 4,
    *(victims.DRIVER,) * 3,
    "spark application",
)
_FOREIGN_OBJECTS = (
    "in/notes.txt",
    "in/orders/readme.txt",
    "in/orders-of-others/1.csv",
    "archive/notes.txt",
    "archive/of-others/1.csv",
    "root/notes.txt",
    "root/views/notes.txt",
)

Rows = Counter[tuple[Any, ...]]


class KeepingSoak:
    """The job of `keeping_job.py` on an S3 server behind a proxy with faults.  A context manager.

    Args:
        server: has the files, the archive and the root.
        scratch: has the tables and the logs.
        chance: decides about everything.
    """

    def __init__(self, server: S3Server, scratch: Path, chance: random.Random) -> None:
        self._server, self._scratch, self._chance = server, scratch, chance
        self._client = server.client()
        self.proxy = server.fault_proxy(random.Random(chance.random()))
        self._root, self._tables = f"s3://{_BUCKET}/root", scratch / "tables"
        self._orders: dict[str, bytes] = {}
        self._prices: dict[str, list[tuple[int, int]]] = {}
        self._rows: list[tuple[int, int, int]] = []
        self._foreign_files: dict[Path, bytes] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self.lives = 0
        self.kills = Counter[str]()
        self.compared = 0

    def __enter__(self) -> KeepingSoak:
        for key in _FOREIGN_OBJECTS:
            self._server.put(_BUCKET, key, b"of somebody else: " + key.encode())
        for method in ("GET", "PUT", "LIST"):
            self.proxy.on(method, probability=_FAULTS).refuse()
            self.proxy.on(method, probability=_FAULTS).cut()
        self.proxy.on("PUT", probability=_FAULTS).refuse(applied=True)
        self.feed(5)
        self._begin_life()
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self.proxy.close()

    @property
    def epochs(self) -> int:
        """The number of retained epochs."""
        return int(self._store().epoch_times().num_rows)

    @property
    def tables_exist(self) -> bool:
        """Whether every table has been published to."""
        targets = keeping_job.targets(str(self._tables)).values()
        return all(_read(target) is not None for some in targets for target in some)

    @property
    def orders(self) -> int:
        """The number of files that have come."""
        return len(self._orders)

    def feed(self, orders: int) -> None:
        """New orders, and corrections of prices: files that are rewritten, or deleted."""
        for _ in range(orders):
            path = f"{self.orders:05}.csv"
            rows = [
                (len(self._rows) + number, self._chance.randrange(_USERS), self._chance.randrange(100))
                for number in range(self._chance.randint(1, 20))
            ]
            self._rows += rows
            self._orders[path] = _csv("id,user,amount", rows)
            self._server.put(_BUCKET, f"in/orders/{path}", self._orders[path])
        for _ in range(self._chance.randint(0, 2)):
            path = f"{self._chance.randrange(_PRICES)}.csv"
            if path in self._prices and self._chance.random() < 0.3:
                if self._is_read(path):
                    del self._prices[path]
                    self._client.delete_object(Bucket=_BUCKET, Key=f"in/prices/{path}")
                continue
            prices = [
                (self._chance.randrange(_USERS), self._chance.randrange(10)) for _ in range(self._chance.randint(1, 6))
            ]
            self._prices[path] = prices
            self._server.put(_BUCKET, f"in/prices/{path}", _csv("user,factor", prices))

    def plant(self) -> None:
        """Writes files of another program next to the tables and into their directories."""
        for name in ("delta", "parquet"):
            for directory in (self._tables, self._tables / name, *sorted((self._tables / name).iterdir())):
                for file in ("notes.txt", "data-of-others.parquet"):
                    path = directory / file
                    # The content is not Parquet: a reader that takes it for a data file fails.
                    if path not in self._foreign_files and directory.is_dir():
                        path.write_bytes(b"of somebody else")
                        self._foreign_files[path] = path.read_bytes()

    def kill(self, kind: str) -> bool:
        """Kills the youngest process of a kind.  Returns whether there was one."""
        assert self._process is not None
        if not victims.send(self._process.pid, kind):
            return False
        self.kills[kind] += 1
        if kind == victims.DRIVER:
            code = self._process.wait()
            assert code == -signal.SIGKILL, f"the run ended with {code}:\n{self._log().read_text()[-4_000:]}"
            self._begin_life()
        return True

    def wait_for_commit(self, limit_s: float) -> None:
        """Waits until an epoch is committed after this moment, at most for some time: the next kill may come before."""
        before, until = self._epoch(), time.monotonic() + limit_s
        while self._epoch() == before and time.monotonic() < until:
            self._require_alive()
            time.sleep(0.2)

    def settle(self) -> None:
        """Waits until every file is committed and moved, and every table is at the last epoch."""
        self.wait(lambda: not self._waiting(), "every file is moved", _LIMIT_S)
        self.wait(self._are_equal, "the views have the rows of all files", _LIMIT_S, self._about)

    def stop(self) -> None:
        """Ends the run as a user does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(_LIMIT_S) == 0, self._log().read_text()[-4_000:]

    def check_tables(self, *, is_last: bool = False) -> None:
        """Compares each table with its view at the epoch that it names."""
        store = self._store()
        latest = store.latest_epoch()
        for view, targets in keeping_job.targets(str(self._tables)).items():
            for target in targets:
                found = _read(target)
                if found is None:
                    assert not is_last, f"{target} does not exist"
                    continue
                epoch, rows = found
                names, actual = rows.column_names, _rows_of(rows, rows.column_names)
                # Epochs that do not change a view are not in every table of it.
                for each in {epoch, latest} if is_last else {epoch}:
                    wanted = _rows_of(store.snapshot(each).view(view).to_arrow(), names)
                    differs = f"{actual - wanted} too much, {wanted - actual} lack"
                    assert actual == wanted, f"{target} names epoch {epoch}; at epoch {each} it has {differs}"
                    self.compared += 1

    def check_files(self, *, is_last: bool = False) -> tuple[int, int]:
        """Compares the bytes of each file with those that came.  Returns the files at their place, and in the archive.

        A file that is being moved is in both places for a moment.
        """
        here, moved = self._objects("in/orders/"), self._objects("archive/")
        for path, content in self._orders.items():
            # A move deletes after it has copied: read again what was moved between the two listings.
            there: list[bytes | None] = [each[path] for each in (here, moved) if path in each]
            there = there or [self._object(f"archive/{path}")]
            assert all(each == content for each in there), f"{path} has other bytes than it came with"
            assert not is_last or len(there) == 1, f"{path} is at its place and in the archive"
        ours = self._orders.keys()
        return len(here.keys() & ours), len(moved.keys() & ours)

    def check_foreign(self) -> int:
        """Checks that the files of other programs are unchanged.  Returns their number."""
        for key in _FOREIGN_OBJECTS:
            assert self._object(key) == b"of somebody else: " + key.encode(), f"{key} has changed"
        for path, content in self._foreign_files.items():
            assert path.is_file(), f"{path} is deleted"
            assert path.read_bytes() == content, f"{path} has changed"
        return len(_FOREIGN_OBJECTS) + len(self._foreign_files)

    def check_views(self) -> None:
        """Compares the last views with what is computed from the files."""
        different = [*self._differences()]
        assert not different, "\n".join(different)

    def wait(
        self, condition: Callable[[], bool], what: str, limit_s: float, about: Callable[[], str] = lambda: ""
    ) -> None:
        """Waits until something is true; fails if it takes too long."""
        until = time.monotonic() + limit_s
        while not condition():
            self._require_alive()
            is_late = time.monotonic() > until
            assert not is_late, f"not true in time: {what}\n{about()}\n{self._log().read_text()[-4_000:]}"
            time.sleep(0.3)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _require_alive(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, f"the run ended by itself:\n{self._log().read_text()[-4_000:]}"

    def _is_read(self, path: str) -> bool:
        """Whether the present version of prices is in the views.

        With `on_change="replace"`, the rows of a version stay if the next one is deleted before it is read.
        """
        etag = f'"{md5(_csv("user,factor", self._prices[path]), usedforsecurity=False).hexdigest()}"'
        rows = self._store().ledger.files("prices").to_pylist() if self._epoch() else []
        return any(row["path"].endswith(f"/{path}") and row["etag"] == etag and row["status"] == "done" for row in rows)

    def _waiting(self) -> bool:
        return bool(self._objects("in/orders/", names_only=True).keys() & self._orders.keys())

    def _are_equal(self) -> bool:
        return not [*self._differences()]

    def _differences(self) -> Iterator[str]:
        counts, sums = Counter[int](), Counter[int]()
        for _, user, amount in self._rows:
            counts[user] += 1
            sums[user] += amount
        prices = [price for rows in self._prices.values() for price in rows]
        priced, factors = Counter(user for user, _ in prices), Counter[int]()
        for user, factor in prices:
            factors[user] += factor
        wanted: dict[str, Rows] = {
            "all_orders": Counter(self._rows),
            "by_user": Counter((user, counts[user], sums[user]) for user in counts),
            "prices_of": Counter((user, number, factors[user]) for user, number in priced.items()),
            "priced": Counter(
                (user, counts[user] * priced[user], sums[user] * factors[user]) for user in counts.keys() & priced
            ),
        }
        snapshot = self._store().snapshot()
        for view, rows in wanted.items():
            table = snapshot.view(view).to_arrow()
            found = _rows_of(table, table.column_names)
            if found != rows:
                yield f"{view} has {found - rows} too much, and lacks {rows - found}"

    def _about(self) -> str:
        """The differences, and the state of the run."""
        store = self._store()
        owner = store.owner()
        status = {} if owner is None else owner.status or {}
        named = {name: status.get(name) for name in ("phase", "message", "caught_up", "backfills", "recoveries")}
        rows = [
            f"{row['path'].rpartition('/')[2]} {row['status']} {row['rows_read']} {row['etag']}"
            for row in store.ledger.files("prices").to_pylist()
        ]
        there = self._objects("in/prices/")
        return "\n".join(
            [*self._differences(), str(named), *rows, f"in the bucket: {there}", f"wanted: {self._prices}"]
        )

    def _epoch(self) -> int:
        try:
            return self._store().latest_epoch()
        except sw.errors.StoreNotFoundError:
            return 0

    def _store(self) -> sw.Store:
        return sw.open(self._root, self._server.storage_options)

    def _objects(self, prefix: str, *, names_only: bool = False) -> dict[str, bytes]:
        """Name below a prefix → content."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=_BUCKET, Prefix=prefix)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        found = {}
        for key in keys:
            content = b"" if names_only else self._object(key)
            if content is not None:
                found[key.removeprefix(prefix)] = content
        return found

    def _object(self, key: str) -> bytes | None:
        try:
            content: bytes = self._client.get_object(Bucket=_BUCKET, Key=key)["Body"].read()
        except self._client.exceptions.NoSuchKey:
            return None
        return content

    def _begin_life(self) -> None:
        self.lives += 1
        places = (self._root, f"s3://{_BUCKET}/in", f"s3://{_BUCKET}/archive", str(self._tables))
        with self._log().open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.real.keeping_job", *places],
                env={**os.environ, "STORAGE_OPTIONS": json.dumps(self.proxy.storage_options)},
                stdout=log,
                stderr=log,
            )

    def _log(self) -> Path:
        return self._scratch / f"life-{self.lives}.log"


def _csv(header: str, rows: list[tuple[int, ...]] | list[tuple[int, int]] | list[tuple[int, int, int]]) -> bytes:
    return "".join([f"{header}\n", *(",".join(map(str, row)) + "\n" for row in rows)]).encode()


def _rows_of(table: pa.Table, names: list[str]) -> Rows:
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


def _read(target: keeping_job.Target) -> tuple[int, pa.Table] | None:
    """The epoch that a table names, and its rows, by the library of its format; None before its first commit."""
    for _ in range(20):
        try:
            return _read_delta(target) if isinstance(target, sw.Delta) else _read_parquet(target)
        except (FileNotFoundError, OSError):
            time.sleep(0.2)  # it was written meanwhile, and files are deleted soon here
    raise AssertionError(f"{target} cannot be read")


def _read_delta(target: sw.Delta) -> tuple[int, pa.Table] | None:
    if not (target.location.path / "_delta_log").is_dir():
        return None
    table = deltalake.DeltaTable(str(target.location.path))
    for commit in table.history():
        published = PublishedEpoch.of(commit)
        if published is not None:
            return (published.epoch, pa.table(table.to_pyarrow_table())) if published.epoch else None
    return None


def _read_parquet(target: sw.ParquetFiles) -> tuple[int, pa.Table] | None:
    directory = target.location.path
    manifest = directory / "_manifest.json"
    if not manifest.is_file():
        return None
    document = json.loads(manifest.read_text())
    published = PublishedEpoch.of(document)
    assert published is not None, f"{manifest} names no epoch"
    if not published.epoch:
        return None
    tables = [pq.read_table(directory / name, partitioning=None) for name in document["files"]]
    nothing = pa.table({name: [] for name in document["columns"]})
    return published.epoch, pa.concat_tables(tables) if tables else nothing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real.keeping_soak")
    parser.add_argument("--kills", type=int, default=50, help="the number of kills")
    parser.add_argument("--minutes", type=float, default=20.0, help="no kill comes later")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, S3Server() as server:
        server.create_bucket(_BUCKET)
        with KeepingSoak(server, Path(scratch), chance) as soak:
            soak.wait(lambda: soak.tables_exist, "every table exists", _LIMIT_S)
            soak.plant()
            while soak.kills.total() < arguments.kills and time.monotonic() < began_s + 60 * arguments.minutes:
                soak.feed(chance.randint(1, 6))
                time.sleep(chance.choice((0.0, chance.uniform(0, 3))))
                kind = chance.choice(_KINDS)
                if soak.kill(kind):
                    print(f"{time.monotonic() - began_s:6.0f} s: {kind}, {soak.orders} files", flush=True)
                soak.wait_for_commit(chance.choice((0.5, 3, 12)))
                soak.check_tables()
                if soak.kills.total() % 5 == 0:
                    soak.check_files()
                    soak.check_foreign()
            soak.settle()
            soak.stop()
            soak.check_views()
            soak.check_tables(is_last=True)
            left, moved = soak.check_files(is_last=True)
            foreign = soak.check_foreign()
            faults = sum(request.fault is not None for request in soak.proxy.requests)
            kinds = ", ".join(f"{kind} {times}" for kind, times in soak.kills.most_common())
            print(f"\n{soak.kills.total()} kills in {soak.lives} lives ({kinds})")
            print(f"{soak.orders} files: {moved} moved, {left} left, 0 lost; {soak.epochs} epochs")
            print(f"{soak.compared} comparisons of tables, 0 differences; {foreign} foreign files, 0 changed")
            print(f"{faults} of {len(soak.proxy.requests)} requests failed; {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
