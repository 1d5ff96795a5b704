"""`python -m tests.cluster.cluster_job`: the flights as a job of a real Ray cluster, from start to stop.

All parts are on this machine and on free ports: an S3 server with a year of flights, a cluster of two nodes with a job
server, and the job, `examples/flights_job.py`, which is submitted as to any other cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from slackwater.cli.terminal.edge import reports_errors
from slackwater.cli.terminal.safe_console import SafeConsole
from slackwater.plugins.demo.flights import day_files
from slackwater.plugins.demo.place import Place, open_place
from slackwater.reading.store import open as open_store
from slackwater.testing.servers.ray_cluster import RayCluster
from state.clock import Clock, SystemClock
from state.errors import RunFailedError, StoreNotFoundError, UsageError

_SCRIPT = Path("examples") / "flights_job.py"
_FORMAT = "parquet"
_JOB = "flights"
_STOP_S = 120
_LIMIT_S = 240.0
_POLL_S = 0.5


def run_job(project: Path) -> bool:
    """Submits the job, lets it read every file, stops it, and takes all parts down.

    Args:
        project: the directory with the sources of this project, which are sent to the cluster.

    Returns:
        True if the job stopped gracefully, with every file in its views.

    Raises:
        UsageError: the directory does not have the sources, or an optional package is missing.
        RunFailedError: the cluster or the job failed, or exceeded the time limit.
    """
    if not (project / _SCRIPT).is_file():
        raise UsageError(f"{project} has no {_SCRIPT}: run this in the directory of the project's sources")
    with open_place(None) as place:
        files = [file for file in day_files() if file.format == _FORMAT]
        for file in files:
            place.put(file.key, file.body)
        # As on any cluster, the nodes have the access to the bucket.
        environment = {**place.environment, "FLIGHTS_RAW": place.raw, "FLIGHTS_ROOT": place.root}
        with RayCluster(num_cpus=2, environment=environment) as cluster:
            cluster.add_node("worker", num_cpus=2)
            return _Job(project, place, cluster, SystemClock()).play(len(files))


class _Job:
    def __init__(self, project: Path, place: Place, cluster: RayCluster, clock: Clock) -> None:
        self._project, self._place, self._cluster, self._clock = project, place, cluster, clock
        self._environment = {**os.environ, **cluster.environment, **place.environment, "NO_COLOR": "1"}
        self._console = SafeConsole()
        self._started = clock.monotonic()

    def play(self, num_files: int) -> bool:
        self._say(f"{num_files} files in {self._place.name}; a cluster with the job server {self._cluster.job_server}")
        self._run("ray", "job", "submit", *_how(), "--no-wait", "--", "python", str(_SCRIPT), quiet=True)
        log = self._spawn("ray", "job", "logs", "--follow", _JOB)
        showing = threading.Thread(target=self._show_log, args=(log,), name="log", daemon=True)
        showing.start()
        try:
            self._wait_for(num_files, log)
            self._run("ray", "job", "stop", _JOB, quiet=True)
            log.wait(_LIMIT_S)
        finally:
            log.kill()
            log.wait()
        showing.join()
        self._run("ray", "job", "status", _JOB)
        self._run("slackwater", "status", self._place.root, *_reached_by(self._place.storage_options))
        owner = open_store(self._place.root, self._place.storage_options).owner()
        stopped, done = owner is not None and owner.phase == "stopped", self._done()
        self._say(
            f"{done} of {num_files} files are in the views; " + ("stopped" if stopped else "the job did not stop")
        )
        return stopped and done == num_files

    def _wait_for(self, num_files: int, log: subprocess.Popen[str]) -> None:
        deadline = self._clock.monotonic() + _LIMIT_S
        while self._done() < num_files:
            if log.poll() is not None:
                raise RunFailedError("the job ended early: see its log above")
            if self._clock.monotonic() >= deadline:
                raise RunFailedError(f"the job did not read {num_files} files within {_LIMIT_S:g} s: see its log above")
            self._clock.sleep(_POLL_S)

    def _done(self) -> int:
        try:
            statuses = open_store(self._place.root, self._place.storage_options).ledger.files()["status"]
        except StoreNotFoundError:
            return 0
        return int(statuses.to_pylist().count("done"))

    def _show_log(self, log: subprocess.Popen[str]) -> None:
        assert log.stdout is not None
        for line in log.stdout:
            self._console.print(f"    {line.rstrip()}", soft_wrap=True)

    def _run(self, *command: str, quiet: bool = False) -> None:
        """Runs a command to its end; the output of a quiet one is shown only if it fails."""
        self._console.print(f"$ {' '.join(command)}", soft_wrap=True)
        ended = subprocess.run(
            _argv(command), cwd=self._project, env=self._environment, capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            raise RunFailedError(
                f"{' '.join(command)} ended with code {ended.returncode}: {ended.stdout} {ended.stderr}"
            )
        if not quiet:
            for line in ended.stdout.splitlines():
                self._console.print(f"    {line}", soft_wrap=True)

    def _spawn(self, *command: str) -> subprocess.Popen[str]:
        self._console.print(f"$ {' '.join(command)}", soft_wrap=True)
        return subprocess.Popen(
            _argv(command),
            cwd=self._project,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _say(self, text: str) -> None:
        self._console.print(f"{self._clock.monotonic() - self._started:6.1f} s  {text}", soft_wrap=True)


def _how() -> list[str]:
    environment = {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(_STOP_S)}}
    return [f"--submission-id={_JOB}", "--working-dir=.", f"--runtime-env-json={json.dumps(environment)}"]


def _argv(command: Sequence[str]) -> list[str]:
    """The command line with the programs of this Python environment, regardless of PATH."""
    program, *arguments = command
    if program == "slackwater":
        return [sys.executable, "-m", "slackwater", *arguments]
    job, verb, *options = arguments
    return [sys.executable, "-m", "ray.scripts.scripts", job, verb, "--log-color=false", *options]


def _reached_by(options: Mapping[str, str]) -> list[str]:
    return [f"-oendpoint={options['endpoint']}", "-oallow_http=true"]


@reports_errors
def main() -> None:
    """Runs the job in the current directory; exit code 1 if it did not stop gracefully or files are missing."""
    if not run_job(Path.cwd()):
        sys.exit(1)


if __name__ == "__main__":
    main()
