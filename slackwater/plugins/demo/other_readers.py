"""Other readers of the demo's view `by_carrier`: the libraries of Delta and Iceberg, and a client of PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from slackwater.reading.store import Store

PUBLISHED = "by_carrier"
_ADDRESS = re.compile(r"postgresql://\S+")
_ENDS_WITHIN_S = 20.0


@dataclass(frozen=True)
class PublishedPlace:
    """The place of the published tables.

    Args:
        url: the URL or directory of both.
        catalog: the file of Iceberg's catalog, an SQLite database.
        view: the name of the view.
    """

    url: str
    catalog: str
    view: str = PUBLISHED

    @property
    def delta(self) -> str:
        return f"{self.url}/delta/{self.view}"

    @property
    def iceberg(self) -> str:
        return f"{self.url}/iceberg/{self.view}"

    @property
    def catalog_properties(self) -> dict[str, str]:
        """The properties of the catalog, as PyIceberg names them."""
        return {"type": "sql", "uri": f"sqlite:///{self.catalog}"}


@dataclass(frozen=True)
class Answer:
    """The rows of a reader, and the view at the same epoch.

    Args:
        reader: the library or program.
        epoch: the epoch that it names.
        found, expected: what is compared, as texts: all rows of a table, or one row of an answer.
    """

    reader: str
    epoch: int
    found: list[str]
    expected: list[str]

    @property
    def is_equal(self) -> bool:
        return self.found == self.expected


def published_answers(store: Store, place: PublishedPlace, options: Mapping[str, str]) -> Iterator[Answer]:
    """The published tables, each with the view at the table's epoch.

    Args:
        options: the storage options of the place.
    """
    for reader, table in (("Delta", _delta(place, options)), ("Iceberg", _iceberg(place, options))):
        if table is not None:
            epoch, rows = table
            view = store.snapshot(epoch).view(place.view).to_arrow()
            yield Answer(reader, epoch, _sorted(rows.select(view.column_names)), _sorted(view))


def answer_of_sql(
    store: Store,
    root: str,
    environment: Mapping[str, str],
    view: str = PUBLISHED,
    columns: Sequence[str] = ("flights", "departed"),
) -> Answer:
    """What `slackwater serve` answers to psql, or to psycopg where psql is not installed.

    Args:
        root: its URL or directory.
        environment: the environment variables that give access to it.
        view: the view that is asked for.
        columns: its columns of whole numbers that are summed.
    """
    question = f"SELECT count(*), {', '.join(f'sum({name})' for name in columns)} FROM {view}"
    with _served(root, environment) as address:
        if psql := shutil.which("psql"):
            command = [psql, address, "-At", "-c", "SHOW slackwater.epoch", "-c", question]
            epoch, answer = subprocess.check_output(command, text=True).split()
            reader, found = "psql", tuple(int(each) for each in answer.split("|"))
        else:
            import psycopg

            with psycopg.connect(address) as connection:
                [[epoch]] = connection.execute("SHOW slackwater.epoch")
                [row] = connection.execute(question)
            reader, found = "psycopg", tuple(int(each) for each in row)
    rows = store.snapshot(int(epoch)).view(view).to_arrow()
    expected = (rows.num_rows, *(sum(rows[name].to_pylist()) for name in columns))
    return Answer(reader, int(epoch), [str(found)], [str(expected)])


def _delta(place: PublishedPlace, options: Mapping[str, str]) -> tuple[int, pa.Table] | None:
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(place.delta, storage_options=dict(options)):
        return None
    table = DeltaTable(place.delta, storage_options=dict(options))
    commits = (commit for commit in table.history() if "slackwater.epoch" in commit)
    return int(next(commits)["slackwater.epoch"]), table.to_pyarrow_table()


def _iceberg(place: PublishedPlace, options: Mapping[str, str]) -> tuple[int, pa.Table] | None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    names = {
        "endpoint": "s3.endpoint",
        "access_key_id": "s3.access-key-id",
        "secret_access_key": "s3.secret-access-key",
        "region": "s3.region",
    }
    access = {names[name]: value for name, value in options.items() if name in names}
    try:
        table = load_catalog("slackwater", **place.catalog_properties, **access).load_table(f"slackwater.{place.view}")
    except NoSuchTableError:
        return None
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return None
    return int(snapshot.summary["slackwater.epoch"] or 0), table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(str(tuple(row.values())) for row in rows.to_pylist())


@contextmanager
def _served(root: str, environment: Mapping[str, str]) -> Iterator[str]:
    """The address of `slackwater serve` in a child process that ends with the block."""
    command = [sys.executable, "-m", "slackwater", "serve", root, "--port", "0"]
    server = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = _ADDRESS.search(line)
        if address is None:
            raise ChildProcessError(f"slackwater serve {root} did not start: {line}")
        yield address[0]
    finally:
        server.terminate()
        try:
            server.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
