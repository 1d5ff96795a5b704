"""The command `slackwater`.

Data flow: `app` parses the arguments with typer → a function in `commands/` calls the public interface of `slackwater`
(a `Pipeline`, or a `Store` from `open`) or sends a command to a run → `Output` prints the result → `reports_errors`
turns an error into one line and an exit code.

    app.py      run, explain, verify and demo; application.py, which adds commands; command_groups.py, the help
    options.py  the options that commands share, and `-o key=value`
    target.py   `app.py:pipeline` → the pipeline
    commands/   the other commands
    display/    runs and roots as pictures, log lines and events
    terminal/   the output of all of them

Invariants:

* A command has no own knowledge about stores or runs: Python gives the same data.
* Tables go to stdout; logs, progress and errors go to stderr.  So `--json` is one JSON document, or one per line for a
  command that follows a run or a view.
* The display of a run is a function of its `RunStatus` and of the size of the terminal; columns do not move.
* Text from a file or a store is printed without control characters.
* A secret is never accepted on the command line, where the list of processes shows it.
* Exit codes: 0 success; 1 failure; 2 usage; 3 a published table lacks epochs; 75 a living process owns the root.
"""
