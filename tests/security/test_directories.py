"""Another user of the machine can neither plant a file that a process uses, nor read one that it writes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from actors.objects.range_cache import RangeCache
from state.errors import SettingsError
from tests.repository import ONE_PROCESS, PACKAGES, REPOSITORY, trees

pytestmark = ONE_PROCESS

_PROGRAM = """if True:
    import os, stat, sys
    from pathlib import Path
    temporary, pwned = map(Path, sys.argv[1:])
    victim = temporary.parent / "victim"
    victim.write_text("mine")
    for name in ("slackwater-spark-{uid}", "slackwater-warehouse"):
        planted = temporary / name.format(uid=os.getuid())
        planted.mkdir()
        (planted / "spark-env.sh").write_text(f"touch {pwned}\\n")
    (temporary / f"slackwater-spark-{os.getpid()}.log").symlink_to(victim)

    from spark_bridge.engine.session.local_session import start_local_session
    from spark_bridge.engine.session.settings import SparkSettings
    spark = start_local_session(SparkSettings(), "private")
    warehouse = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
    configured = Path(os.environ["SPARK_CONF_DIR"])
    assert warehouse.parent == configured, (warehouse, configured)
    for each in (configured, configured / "spark.log"):
        assert each.stat().st_uid == os.getuid()
    assert stat.S_IMODE(configured.stat().st_mode) == 0o700
    assert victim.read_text() == "mine"
    assert not pwned.exists()
    print(configured)
"""


@pytest.mark.more
def test_spark_uses_nothing_that_lies_in_the_temporary_directory(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_CONF_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "shared"), str(tmp_path / "pwned")],
        env={**environment, "TMPDIR": str(tmp_path / "shared"), "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    configured = Path(done.stdout.strip())
    assert configured.parent == tmp_path / "shared"
    assert not configured.exists(), "a session of a command leaves nothing"


def test_cache_in_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a directory away")
    (tmp_path / "cache").mkdir()
    os.chown(tmp_path / "cache", 65534, 65534)
    with pytest.raises(SettingsError, match="belongs to user 65534: remove it, or name another directory"):
        RangeCache(tmp_path / "cache", 1_000)


def test_cache_keeps_its_own_entries_when_another_takes_its_directory_away(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "cache", 1_000)
    (tmp_path / "cache").rename(tmp_path / "away")
    (tmp_path / "cache").mkdir()
    cache.put("s3://bucket/file", '"1"', (0, 4), pa.py_buffer(b"true"))
    (entry,) = (tmp_path / "away").iterdir()
    (tmp_path / "cache" / entry.name).write_bytes(b"fake")
    content = cache.get("s3://bucket/file", '"1"', (0, 4))
    assert content is not None and content.to_pybytes() == b"true"


def test_no_module_names_a_file_in_the_temporary_directory() -> None:
    allowed = {"slackwater/plugins/doctor/machine.py"}  # it measures the free space
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees(*PACKAGES, "examples").items()
        if str(path) not in allowed
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ("gettempdir", "mktemp"))
        or (isinstance(node, ast.Constant) and str(node.value).startswith(("/tmp/slackwater", "/var/tmp/")))
    ]
    assert found == [], "take tempfile.mkdtemp, TemporaryDirectory, or state.private_directory"
