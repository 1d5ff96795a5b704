"""Workers of the endpoint: isolation of sessions, limits that hold in native code, replacement, end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from structlog.testing import capture_logs

from slackwater.confinement.worker_process import WorkerProcess, confined_environment
from slackwater.plugins.serve.front.serving_limits import ServingLimits
from slackwater.plugins.serve.front.worker_pool import SERVING
from tests.slackwater.plugins.serve.raw_client import RawClient, framed, startup
from tests.slackwater.plugins.serve.served_sql import HOST, ServedSql, served
from tests.slackwater.reading.written_root import WrittenRoot
from tests.waiting import eventually, is_gone

_DEAF = "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))"
"""Minutes of native code, which ignores interruptions."""

_FORGED = [
    "EXPLAIN (ANALYZE) CREATE OR REPLACE VIEW by_carrier AS SELECT 'forged' AS carrier, 666 AS n",
    "EXPLAIN (ANALYZE) CREATE OR REPLACE MACRO count(x) AS 7",
    "EXPLAIN (ANALYZE) CREATE OR REPLACE MACRO lower(x) AS 'shadowed'",
    "EXPLAIN (ANALYZE) CREATE TABLE fill AS SELECT range FROM range(30)",
    "EXPLAIN (ANALYZE) DROP VIEW by_carrier",
    "EXPLAIN (ANALYZE) DROP SCHEMA public CASCADE",
    "EXPLAIN (ANALYZE) SET search_path = 'main'",
    "EXPLAIN (ANALYZE) CREATE OR REPLACE VIEW pg_class AS SELECT 1 AS tools",
    "EXPLAIN ANALYZE INSERT INTO by_carrier VALUES ('x', 1)",
    "EXPLAIN (ANALYZE, FORMAT json) DROP VIEW by_carrier",
    "EXPLAIN /* SELECT */ DROP VIEW by_carrier",
]


@pytest.fixture(scope="module")
def limited(written: WrittenRoot) -> Iterator[ServedSql]:
    """An endpoint with a worker and a spare one, small limits."""
    limits = ServingLimits(timeout_s=2, max_answer_bytes=1 << 20)
    with served(written.root.url, limits=limits, max_memory_bytes=128 << 20, spare=1) as endpoint:
        yield endpoint


def warm(endpoint: ServedSql, count: int = 2) -> None:
    eventually(lambda: len(endpoint.pool.workers) == count, 120)


def sqlstate(client: psycopg.Connection[Any], query: str) -> str | None:
    with pytest.raises(psycopg.Error) as raised:
        client.execute(query.encode()).fetchall()
    return raised.value.sqlstate


def test_a_session_changes_no_results_of_another(flights: ServedSql) -> None:
    with flights.connect() as one, flights.connect() as other:
        query = "SELECT carrier, n, lower('ABC') FROM by_carrier ORDER BY n"
        before = other.execute(query).fetchall()
        relations = other.execute("SELECT count(*) FROM pg_class").fetchall()
        for forged in _FORGED:
            assert sqlstate(one, forged) in ("25006", "42601"), forged
        assert other.execute(query).fetchall() == before == one.execute(query).fetchall()
        assert other.execute("SELECT count(*) FROM pg_class").fetchall() == relations


def test_sessions_have_engines_of_their_own(flights: ServedSql) -> None:
    """What DuckDB keeps for a whole database, such as the seed and the catalogs, is of one session."""
    with flights.connect() as one, flights.connect() as other:
        query = "SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE 'epoch_%'"
        assert one.execute(query).fetchone() == (1,)
        assert other.execute(query).fetchone() == (1,)


def test_native_code_beyond_its_time_ends_with_its_worker_which_is_replaced(limited: ServedSql) -> None:
    warm(limited)
    with limited.connect() as client, limited.connect() as other:
        assert other.execute("SELECT 1").fetchone() == (1,)
        began = time.monotonic()
        assert sqlstate(client, _DEAF) == "57014"
        assert time.monotonic() - began < 20
        assert sqlstate(other, "SELECT 1") == "57P01"
    assert limited.rows("SELECT 1") == [(1,)]
    warm(limited)


@pytest.mark.more
def test_a_statement_beyond_its_memory_ends_with_its_worker(limited: ServedSql) -> None:
    warm(limited)
    with limited.connect() as client:
        # DuckDB does not count the matrix of this function.
        query = "SELECT damerau_levenshtein(repeat('a', 20000), repeat('b', 20000))"
        assert sqlstate(client, query) == "53200"
    assert limited.rows("SELECT 1") == [(1,)]


def test_a_worker_that_dies_is_replaced_by_the_spare_one_and_its_sessions_end(limited: ServedSql) -> None:
    warm(limited)
    worker, spare = limited.pool.workers
    with limited.connect() as client, capture_logs() as logs:
        assert client.execute("SELECT 1").fetchone() == (1,)
        began = time.monotonic()
        os.kill(worker.pid, signal.SIGKILL)
        # It is warm already: no client waits for the start of a process, which takes some seconds.
        eventually(lambda: limited.pool.workers[:1] == (spare,), 60)
        assert limited.rows("SELECT 1") == [(1,)]
        assert time.monotonic() - began < 10  # within 1 s on a machine that is not busy
        eventually(lambda: (worker.session_count, limited.server.sessions) == (0, 0), 60)
        assert sqlstate(client, "SELECT 1") == "57P01"
    assert [(each["event"], each["exit_code"]) for each in logs] == [("a worker process ended by itself", -9)]
    warm(limited)
    assert limited.pool.workers[0] is spare


def test_texts_answers_cursors_and_parameters_have_limits(limited: ServedSql) -> None:
    warm(limited)
    with limited.connect() as client:
        assert sqlstate(client, "SELECT '" + "x" * (1 << 20) + "'") == "54000"
        assert sqlstate(client, "SELECT repeat('x', 1000) FROM range(2000)") == "54000"
        for text in ("SELECT $65536", "SELECT $4000000000", "SELECT $" + "9" * 5_000):
            with pytest.raises(psycopg.Error):
                client.pgconn.prepare(b"", text.encode())
                client.execute(text.encode(), prepare=False)
        client.execute("BEGIN")
        for number in range(100):
            client.execute(f"DECLARE c{number} CURSOR FOR SELECT 1")
        assert sqlstate(client, "DECLARE more CURSOR FOR SELECT 1") == "54000"
        client.execute("ROLLBACK")
        assert client.execute("SELECT 1").fetchone() == (1,)
        assert sqlstate(client, "SET mine.x = '" + "x" * 20_000 + "'") == "54000"
        with pytest.raises(psycopg.Error) as refused:
            for number in range(200):
                client.execute(f"SET mine.x{number} = 1")
        assert refused.value.sqlstate == "54000"
        client.execute("RESET ALL")
        client.execute("SET mine.x = 1")


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    "text",
    [
        ";" * 1_000_000,
        "SELECT 1" + "+1" * 60_000,
        "SELECT 1 WHERE 1 IN (" + ",".join(map(str, range(150_000))) + ")",
        " UNION ALL ".join(["SELECT 1"] * 50_000),
        "SELECT " + "".join(f"$a{number}$ " for number in range(10_000)),
        "SELECT " + "(" * 100_000,
        "SELECT '" + "x" * 1_000_000 + "'",
    ],
    ids=["semicolons", "sums", "members", "unions", "dollars", "brackets", "literal"],
)
def test_other_clients_are_answered_while_a_long_text_is_read(limited: ServedSql, text: str) -> None:
    warm(limited)
    with RawClient(limited.port) as one:
        one.send(startup()).until(b"Z")
        began = time.monotonic()
        one.send(framed(b"Q", text.encode() + b"\0"))
        # The other worker answers, or the same worker from another thread.
        assert limited.rows("SELECT 1") == [(1,)]
        assert one.until(b"Z") and time.monotonic() - began < 30


@pytest.mark.more
def test_an_idle_session_ends(written: WrittenRoot) -> None:
    with served(written.root.url, limits=ServingLimits(idle_s=0.5)) as endpoint, endpoint.connect() as client:
        eventually(lambda: not endpoint.server.sessions, 60)
        assert sqlstate(client, "SELECT 1") == "57P05"


def test_an_idle_worker_takes_little_memory(limited: ServedSql) -> None:
    warm(limited)
    spare = psutil.Process(limited.pool.workers[-1].pid)
    assert spare.memory_info().rss < 120 << 20


def test_a_worker_gets_only_the_variables_of_its_store() -> None:
    environment = {
        "PATH": "/bin", "HOME": "/root", "SLACKWATER_PASSWORD": "x", "AWS_SECRET_ACCESS_KEY": "s", "AZURE_KEY": "a",
        "DATABASE_URL": "d", "HTTPS_PROXY": "p",
    }  # fmt: skip
    common = {"PATH", "HOME", "PYTHONPATH", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"}
    assert confined_environment(environment, "file").keys() == common
    assert confined_environment(environment, "s3").keys() == common | {"AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"}
    assert confined_environment(environment, "az").keys() == common | {"AZURE_KEY", "HTTPS_PROXY"}


def test_a_worker_ends_with_its_front() -> None:
    program = (
        "from slackwater.confinement.worker_process import WorkerProcess\n"
        "from slackwater.plugins.serve.front.worker_pool import SERVING\n"
        "worker = WorkerProcess(SERVING, 'file')\nprint(worker.pid, flush=True)\nimport os; os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    pid = int(ended.stdout)
    assert is_gone(pid)


@pytest.mark.more
def test_the_command_ends_at_once_while_a_worker_computes(written: WrittenRoot) -> None:
    command = [sys.executable, "-m", "slackwater", "serve", written.root.url, "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(re.findall(r":(\d+)/", server.stdout.readline())[0])
        client = psycopg.connect(host=HOST, port=port, user="ann", dbname="d", autocommit=True)
        failed: list[str | None] = []
        thread = threading.Thread(target=lambda: failed.append(sqlstate(client, _DEAF)))
        thread.start()
        children = f"/proc/{server.pid}/task/{server.pid}/children"
        workers = Path(children).read_text().split()
        began = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert time.monotonic() - began < 5
        thread.join(60)
        assert not thread.is_alive() and workers
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


@pytest.mark.more
def test_a_root_that_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slackwater", "serve", str(tmp_path / "nothing"), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert len(ended.stderr.strip().splitlines()) == 1 and "nothing" in ended.stderr, ended.stderr


def test_a_worker_is_confined_by_the_system() -> None:
    worker = WorkerProcess(SERVING, "file")
    try:
        status = Path(f"/proc/{worker.pid}/status")
        eventually(lambda: "NoNewPrivs:\t1" in status.read_text(), 60)
        limits = Path(f"/proc/{worker.pid}/limits").read_text()
        assert re.search(r"Max core file size\s+0\s+0", limits)
        assert re.search(rf"Max file size\s+{256 << 20}\s+{256 << 20}", limits)
    finally:
        worker.kill()
        worker.wait()
        worker.socket.close()
