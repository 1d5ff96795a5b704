"""The displays of the command line: a run or a root as text, for people and for programs.

Data flow: a `RunStatus` → `RunDisplay` → a picture of blocks, which `LiveDisplay` redraws on a terminal; without a
terminal `RunLog` writes log lines, and with `--json` `EventLines` writes events.

    session.py       a run in the foreground, with the display that fits stderr
    run_display.py   the picture, from source_block.py, epoch_block.py and view_block.py
    notes.py         the lines about faults, which the picture and status.py share
    live_display.py  the picture on a terminal, redrawn in place
    run_log.py       log lines
    event_lines.py   events as JSON lines
    status.py        one screen about a root, from blocks over root_facts.py; status_watch.py, its changes
    trace.py         the waterfall of an epoch

Invariants: a picture is a function of the status and the size of the terminal, and its columns do not move.
"""
