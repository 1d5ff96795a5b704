"""The commands of the command line, one function each.

    reading.py     epochs, files, why, show, sql, watch, quarantine (its export in quarantine.py)
    init.py        init
    alerts.py      alerts
    publishing.py  publish
    observing.py   status, trace, ui and serve (ui.py and serve.py, which run until_signal.py)
    steering.py    pause, resume, stop, throttle, rescale, retry, reingest, forget
    upkeep.py      vacuum, tag
    doctor.py      doctor
    explain.py, dry_run.py, verify.py   output of `explain`, `run --dry-run` and `verify`, which `app.py` has

A command parses its options, calls the public interface (a `Pipeline`, or a `Store`) or `ask`, and prints the result.
To add one, write a function with the decorators `@....command()` and `@reports_errors`; `stop` in steering.py is the
shortest example.
"""
