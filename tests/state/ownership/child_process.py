"""A living process of this machine, and its identity."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from state.ownership.process_identity import ProcessIdentity

_PROGRAM = """
import json
from dataclasses import asdict
from state.ownership.process_identity import ProcessIdentity
print(json.dumps(asdict(ProcessIdentity.current())), flush=True)
input()
"""


@contextmanager
def child_process() -> Iterator[ProcessIdentity]:
    """A process that is killed when the context ends; it is gone then, and no zombie."""
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        identity = ProcessIdentity(**json.loads(child.stdout.readline()))
        yield identity
        child.kill()
