"""The commands of the command line, one function each.

    reading.py     epochs, files, why, show, sql, watch, quarantine (its export in quarantine.py)
    init.py        init
    alerts.py      alerts
    publishing.py  publish
    observing.py   status, trace, ui and serve (ui.py and serve.py, which run until_signal.py)
    asking.py      the commands that follow from a `Command` with a `line`: pause, resume, stop, reingest, forget, ...
    upkeep.py      tag, replace-table
    doctor.py      doctor
    explain.py, dry_run.py, verify.py   output of `explain`, `run --dry-run` and `verify`, which `app.py` has

A command parses its options, calls the public interface (a `Pipeline`, or a `Store`) or `ask`, and prints the result.
Write any other command as a function with the decorator `@command()`; `held` in gate.py is the shortest example.  A new
module of commands is imported by `app.py`.
"""
