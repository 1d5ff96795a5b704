"""A run with static tables and a source with a key that is killed while tables are replaced and files are forgotten."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli.app import app
from tests.real import shop_job
from tests.repository import REPOSITORY
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.long]

KILLS, CUSTOMERS, ORDERS_A_FILE = 5, 400, 150
START_S = 120.0


def test_every_epoch_is_exact_while_tables_change_and_the_run_is_killed(tmp_path: Path) -> None:
    chance, shop = random.Random(19), _Shop(tmp_path)
    for life in range(KILLS):
        shop.orders(chance, files=12)
        before = shop.epochs()
        with subprocess.Popen(
            [sys.executable, Path(shop_job.__file__), str(tmp_path), "for ever"],
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
            stderr=(tmp_path / "log").open("ab"),
        ) as child:
            try:
                eventually(lambda: shop.epochs() > before + 3 or child.poll() is not None, limit_s=START_S)  # noqa: B023
                shop.customers(chance)
                shop.regions(f"life {life}")
                shop.forget(chance)
                until = shop.epochs() + chance.randrange(1, 5)
                with suppress(AssertionError):
                    eventually(lambda: shop.epochs() >= until, limit_s=10)  # noqa: B023
            finally:
                assert child.poll() is None, (tmp_path / "log").read_text()[-3000:]
                child.kill()
    pipeline = shop_job.pipeline(tmp_path)
    pipeline.run(until="caught_up")
    store = sw.open(tmp_path / "root")
    checked = 0
    for epoch in store.epochs()["epoch"].to_pylist():
        if store.snapshot(epoch=epoch).views:
            found = sw.verify(store, epoch, pipeline=pipeline, engine="duckdb")
            assert found.all_equal, found
            checked += 1
    assert checked > KILLS
    names = store.snapshot().rows("regions").to_arrow()["name"].to_pylist()
    assert all(name.startswith(f"life {KILLS - 1}") for name in names)


class _Shop:
    """The files of the shop, and its root."""

    def __init__(self, place: Path) -> None:
        self._place, self._files, self._gone = place, 0, set[str]()
        for name in ("orders", "customers", "states"):
            (place / name).mkdir()
        self.customers(random.Random(0))

    def epochs(self) -> int:
        try:
            return int(sw.open(self._place / "root").epochs().num_rows)
        except sw.SlackwaterError:
            return 0

    def orders(self, chance: random.Random, files: int) -> None:
        for _ in range(files):
            self._files += 1
            numbers = range(self._files * ORDERS_A_FILE, (self._files + 1) * ORDERS_A_FILE)
            rows = [{"id": each, "customer": chance.randrange(CUSTOMERS * 2), "amount": each % 97} for each in numbers]
            pq.write_table(pa.Table.from_pylist(rows), self._place / "orders" / f"{self._files}.parquet")
            self._states(chance)

    def _states(self, chance: random.Random) -> None:
        """A file of states of customers, some of them older than those of the files before."""
        states = [
            {
                "customer": chance.randrange(CUSTOMERS),
                "state": chance.choice(["open", "closed", "new"]),
                "step": chance.randrange(self._files + 5),
                "op": chance.choice("UUUD"),
            }
            for _ in range(ORDERS_A_FILE)
        ]
        path = self._place / "states" / f"{self._files}.json"
        path.write_text("\n".join(map(json.dumps, states)))

    def customers(self, chance: random.Random) -> None:
        lines = [f"{each},{chance.randrange(shop_job.REGIONS + 2)}" for each in range(CUSTOMERS)]
        hidden = self._place / "customers" / ".all"
        hidden.write_text("\n".join(["id,region", *lines, ""]))
        hidden.replace(self._place / "customers" / "all.csv")

    def regions(self, name: str) -> None:
        rows = "".join(f"{each},{name} {each % 5}\n" for each in range(shop_job.REGIONS))
        (self._place / "regions.csv").write_text("region,name\n" + rows)
        self._told("replace-table", str(self._place / "root"), "regions", str(self._place / "regions.csv"))

    def forget(self, chance: random.Random) -> None:
        for source in ("orders", "states"):
            done = sw.open(self._place / "root").ledger.files(source, status="done")["path"].to_pylist()
            files = sorted({*done} - self._gone)
            if files:
                self._gone.add(file := chance.choice(files))
                self._told("forget", str(self._place / "root"), file, "--timeout", "30")

    def _told(self, *command: str) -> None:
        told = CliRunner().invoke(app, list(command))
        assert told.exit_code == 0, told.output
