"""Kills processes of a run at random (`--minutes 30`), or every kind of process at every moment (`--matrix`).

At the end every view must equal DuckDB's answer at every epoch.  Prints the seconds of recovery by kind of process.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
import time
from pathlib import Path

from slackwater.testing.servers.s3_server import S3Server
from tests.real import victims
from tests.real.siege import MOMENTS_S, Siege

_FROZEN_S = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--matrix", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    end = time.monotonic() + 60 * arguments.minutes
    with (
        tempfile.TemporaryDirectory() as scratch,
        S3Server() as server,
        Siege(server, server.create_bucket("soak"), Path(scratch), chance, faults=0.02) as siege,
    ):
        if arguments.matrix:
            for kind, moment_s in itertools.product(victims.KINDS, MOMENTS_S):
                print(f"{kind}: {siege.kill(kind, moment_s).recovery_s:.1f} s", flush=True)
            end = 0.0
        while time.monotonic() < end:
            kind = chance.choice(victims.KINDS)
            if chance.random() < 0.2:
                siege.freeze(kind, _FROZEN_S)
            else:
                kill = siege.kill(kind, chance.choice([0.0, chance.uniform(0, 2)]), files=chance.randint(1, 12))
                print(f"{kill.kind}: {kill.recovery_s:.1f} s, {siege.files} files", flush=True)
        epochs = siege.finish()
        faults = sum(request.fault is not None for request in siege.proxy.requests)
        print(f"\n{siege.files} files, {epochs} epochs, all equal; {len(siege.kills)} kills, {siege.lives} lives,")
        print(f"{siege.freezes} freezes, {faults} of {len(siege.proxy.requests)} requests failed\n")
        print(siege.report())


if __name__ == "__main__":
    main()
