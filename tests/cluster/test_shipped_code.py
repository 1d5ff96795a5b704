"""The workers of a cluster need nothing of this project, nor of the user's modules: they come with the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.running.shipped_code import PACKAGES, runtime_environment
from slackwater.testing.servers.ray_cluster import RayCluster
from tests.cluster.conftest import said_by
from tests.repository import REPOSITORY

_BARE = Path(__file__).with_name("bare_node")
_FORMAT = """
from dataclasses import dataclass, field
from actors.formats.registry import reader_for
from slackwater import Text

@dataclass(frozen=True, kw_only=True)
class Lines:
    name: str = field(default="lines", init=False)

    def reader(self, limits):
        import only_of_workers
        return reader_for(Text(), limits)
"""
_DRIVER = """
import json, sys
from importlib.util import find_spec
from pathlib import Path
import psutil
import ray

def there():
    return [name for name in ("slackwater", "actors", "state", "spark_bridge", "my_formats") if find_spec(name)]

ray.init(logging_level="error", log_to_driver=False)
before = ray.get(ray.remote(there).remote())
ray.shutdown()

import slackwater as sw
from my_formats import Lines

here = Path(__file__).parent
modules = [str(here / "my_formats"), str(here / "far" / "only_of_workers")]
settings = sw.Settings(
    ray=sw.settings.RaySettings(runtime_env={"py_modules": modules}),
    recovery=sw.settings.RecoverySettings(max_tries=1),
)
pipeline = sw.Pipeline("lines", here / "root", settings=settings)
pipeline.source("lines", here / "raw", format=Lines(), discovery=sw.Listing(interval_s=0.2))
pipeline.view("longest", "SELECT max(length(value)) AS longest, count(*) AS n FROM lines")
with pipeline.start() as run:
    run.wait(until="caught_up")
    # Those that end meanwhile are left out.
    processes = [each.info for each in psutil.process_iter(["pid", "ppid", "name", "cmdline"]) if each.info["cmdline"]]
    servers = {each["pid"] for each in processes if "fork_server" in " ".join(each["cmdline"])}
    forks = [each["cmdline"][0] for each in processes if each["ppid"] in servers]
    of_driver = {each.pid for each in psutil.Process().children(recursive=True)}
    descendants = [each["name"] for each in processes if each["pid"] in of_driver]
    report = run.stop()
said = {"before": before, "rows": report.rows, "recoveries": report.recoveries}
print(json.dumps({**said, "forks": forks, "descendants": descendants}))
"""


_CONNECTIONS = """
import json, os
from actors.hosting.ray_session import connect_ray, disconnect_ray, actor_options

def may_fork(environment):
    connect_ray(address=os.environ["RAY_ADDRESS"], num_cpus=1, namespace="forks", runtime_env=environment)
    try:
        return bool(actor_options())
    finally:
        disconnect_ray()

given = [{}, {"py_modules": []}, {"env_vars": {"A": "1"}}]
said = [may_fork(environment) for environment in given]
os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps({"runtime_env": {"env_vars": {"A": "1"}}})
said.append(may_fork({}))
os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps({"runtime_env": {"py_executable": "python3 -s"}})
said.append(may_fork({}))
print(json.dumps({"forks": said}))
"""


def test_a_cluster_that_was_there_gets_this_projects_packages_and_the_users_modules() -> None:
    given = {"py_modules": ["my_formats"], "env_vars": {"TZ": "UTC"}}
    made = runtime_environment(given, joins_cluster=True)
    assert made["env_vars"] == {"TZ": "UTC"} and made["py_modules"][0] == "my_formats"
    assert [Path(each).name for each in made["py_modules"][1:]] == list(PACKAGES)
    assert all((Path(each) / "__init__.py").is_file() for each in made["py_modules"][1:])


def test_nothing_is_added_on_this_machine_nor_in_a_job_which_has_an_environment_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert runtime_environment({"env_vars": {}}, joins_cluster=False) == {"env_vars": {}}
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    assert runtime_environment({}, joins_cluster=True) == {}


@pytest.mark.ray
@pytest.mark.more
def test_a_run_brings_its_code_to_nodes_that_have_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "my_formats").mkdir()
    (tmp_path / "my_formats" / "__init__.py").write_text(_FORMAT, encoding="utf-8")
    (tmp_path / "far" / "only_of_workers").mkdir(parents=True)
    (tmp_path / "far" / "only_of_workers" / "__init__.py").touch()
    (tmp_path / "driver.py").write_text(_DRIVER, encoding="utf-8")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("slack\nwater\nhigh water\n", encoding="utf-8")
    hidden = os.pathsep.join([str(REPOSITORY), str(tmp_path)])
    with RayCluster(num_cpus=2, environment={"PYTHONPATH": str(_BARE), "HIDDEN_PATHS": hidden}) as cluster:
        said = said_by(cluster, tmp_path / "driver.py", timeout_s=200)
    assert (said["before"], said["rows"], said["recoveries"]) == ([], 3, 0)
    for actor in ("Coordinator", "ListActor", "FetchActor"):
        assert [fork for fork in said["forks"] if fork.startswith(f"ray::{actor}")], said["forks"]
    # Ray ends a job by a signal to all its descendants.
    assert set(said["descendants"]) == {"java"}
    view = sw.open(tmp_path / "root").snapshot().view("longest").to_arrow().to_pylist()
    assert view == [{"longest": 10, "n": 3}]


@pytest.mark.ray
@pytest.mark.more
def test_workers_of_a_cluster_are_forks_where_they_need_no_other_packages(tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(_CONNECTIONS, encoding="utf-8")
    with RayCluster(num_cpus=1) as cluster:
        said = said_by(cluster, tmp_path / "driver.py", timeout_s=60)
    assert said["forks"] == [True, True, False, True, False]
