"""The command `slackwater`.

Data flow: `app` reads the arguments with typer → a command calls what `import slackwater` gives to everybody (a
pipeline, or `sw.open`) → `Output` prints Arrow tables → `edge` turns an error into one line and an exit code.

Invariants:

* A command has no knowledge of its own about stores or runs: what it prints can be had from Python.
* Tables go to stdout; logs, progress and errors go to stderr.  So `--json` is always one JSON document.
* What comes from a file or a store is printed without control characters.
* A secret is never taken from the command line, where the list of processes shows it.
* Exit codes: 0; 1 failure; 2 usage; 75 the root is owned by a living process.

    app.py        the commands
    reading.py    those of them that ask a view something
    correcting.py those that correct files
    options.py    their options, and how `-o key=value` is read
    target.py     `app.py:pipeline` → the pipeline
    session.py    a run in the foreground: signals, progress, report
    verify.py     a verification: its steps, and what it found
    answer.py     the answer to a query
    follow.py     the changes of a view, as they come
    progress.py   how far a run is, as a live table or as log lines
    quarantine.py bad records: shown, exported, cleared
    bad_record_file.py bad records for other programs
    commands.py   what is asked of the owner of a root: pause, resume, stop, throttle, rescale, retry, reingest, forget
    upkeep.py     vacuum and tags, likewise
    output.py     tables for people, for pipes and for programs
    edge.py       errors → lines and exit codes
"""

from __future__ import annotations

from slackwater.cli.app import main

__all__ = ["main"]
