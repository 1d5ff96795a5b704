"""Kills processes of a run at random.

`--minutes 30` chooses them freely, `--times 20` kills each kind so often, and `--matrix` each kind at every moment.
With `--behind 100000` so many files are committed before the first kill and the first fault.  At the end every view
must equal DuckDB's answer at every epoch.  Prints the seconds of recovery by kind of process.
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
    plan = parser.add_mutually_exclusive_group()
    plan.add_argument("--minutes", type=float, default=30.0, help="kill and freeze at random for so long")
    plan.add_argument("--times", type=int, default=0, help="kill each kind of process so often, in random order")
    plan.add_argument("--matrix", action="store_true", help="kill each kind of process at every moment")
    parser.add_argument("--behind", type=int, default=0, help="small files that are committed before the first kill")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with (
        tempfile.TemporaryDirectory() as scratch,
        S3Server() as server,
        Siege(server, server.create_bucket("soak"), Path(scratch), chance, 0.02, arguments.behind) as siege,
    ):
        end = time.monotonic() + 60 * arguments.minutes
        if arguments.matrix or arguments.times:
            end = 0.0
            planned = list(itertools.product(victims.KINDS, MOMENTS_S))
            if arguments.times:
                planned = [(kind, chance.uniform(0, 2)) for kind in victims.KINDS for _ in range(arguments.times)]
                chance.shuffle(planned)
            for kind, moment_s in planned:
                print(f"{kind}: {siege.kill(kind, moment_s).recovery_s:.1f} s", flush=True)
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
