from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from state.clock import SystemClock
from state.errors import OwnedError
from state.location import Location
from state.ownership.owner import Ownership, read_owner
from state.ownership.process_identity import ProcessIdentity
from tests.state.ownership.child_process import child_process
from tests.waiting import eventually

ME = ProcessIdentity.current()
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]
OWNS = """
import sys
from state.clock import SystemClock
from state.location import Location
from state.ownership.owner import Ownership
run = Ownership(Location(sys.argv[1]), SystemClock(), run_id="first", pipeline="p", interval_s=0.05)
run.acquire()
input()
run.release()
"""


def may_unshare() -> bool:
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def test_this_process_lives_and_all_its_parts_are_known() -> None:
    assert not ME.has_ended() and ME.lives()
    assert ME.pid == os.getpid() and ME.start > 0 and len(ME.boot_id) == 36 and ME.pid_namespace.startswith("pid:[")


def test_a_process_with_the_id_of_an_earlier_one_is_another() -> None:
    assert replace(ME, start=ME.start - 1).has_ended()
    assert not replace(ME, start=ME.start - 1).lives()


@pytest.mark.parametrize(
    "elsewhere",
    [{"boot_id": "another"}, {"boot_id": ""}, {"pid_namespace": "pid:[1]"}, {"pid_namespace": ""}],
    ids=str,
)
def test_a_process_of_another_boot_or_namespace_is_never_known_to_have_ended(elsewhere: dict[str, Any]) -> None:
    assert not replace(ME, pid=2**22, **elsewhere).has_ended()
    assert not replace(ME, start=1, **elsewhere).has_ended()
    assert not replace(ME, **elsewhere).lives()
    assert replace(ME, pid=2**22).has_ended()


def test_a_process_that_was_killed_has_ended() -> None:
    with child_process() as child:
        assert not child.has_ended()
    assert child.has_ended()


def test_a_zombie_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()
        stat = Path(f"/proc/{child.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        start = int(stat.read_text().rpartition(")")[2].split()[19])
        assert replace(ME, pid=child.pid, start=start).has_ended()


def test_processes_of_two_namespaces_have_different_digests() -> None:
    others = [replace(ME, boot_id="another"), replace(ME, pid_namespace="pid:[1]")]
    assert len({each.namespace_digest for each in (ME, *others)}) == 3


@pytest.mark.skipif(not may_unshare(), reason="the user may not make PID namespaces")
def test_a_run_in_another_pid_namespace_of_this_host_keeps_its_root(tmp_path: Path) -> None:
    root = Location(str(tmp_path / "root"))
    with subprocess.Popen([*UNSHARE, sys.executable, "-c", OWNS, root.url], stdin=subprocess.PIPE) as first:
        eventually(lambda: read_owner(root) is not None)
        owner = read_owner(root)
        assert owner is not None and not owner.is_dead()
        assert (owner.host, owner.process.boot_id) == (ME.host, ME.boot_id)
        assert owner.process.pid_namespace != ME.pid_namespace
        with pytest.raises(OwnedError, match=rf"is owned by pipeline 'p', pid {owner.pid} on"):
            Ownership(root, SystemClock(), run_id="second", pipeline="p").acquire()
        first.communicate(b"\n")
