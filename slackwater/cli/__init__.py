"""The command `slackwater`.

Data flow: `app` reads the arguments with typer → a command calls what `import slackwater` gives to everybody (a
pipeline, or `sw.open`) → `Output` prints Arrow tables → `edge` turns an error into one line and an exit code.

Invariants:

* A command has no knowledge of its own about stores or runs: what it prints can be had from Python.
* Tables go to stdout; logs, progress and errors go to stderr.  So `--json` is one JSON document, or one a line where a
  command goes on.
* What is shown of a run is a function of its `RunStatus` and of the size of the terminal; columns do not move.
* What comes from a file or a store is printed without control characters.
* A secret is never taken from the command line, where the list of processes shows it.
* Exit codes: 0; 1 failure; 2 usage; 75 the root is owned by a living process.

    app.py        the command: what runs, explains, checks and keeps a root
    observing.py  the commands that watch a pipeline
    reading.py    those that read a root
    steering.py   those to a running pipeline
    options.py    their options, and how `-o key=value` is read
    doctor.py     what is wrong with a machine or a store, and how to mend it
    target.py     `app.py:pipeline` → the pipeline
    session.py    a run in the foreground: signals, what shows it, report
    run_display.py what a run looks like on a terminal, from source_block.py, epoch_block.py and view_block.py
    fixed_table.py tables that do not move; quantities.py numbers that fit their columns
    live_display.py that picture, renewed in place; run_log.py the same as log lines
    event_lines.py the events of a run for programs
    status.py     one screen about a root; status_watch.py how it changes
    trace.py      where the time of an epoch went, as a waterfall
    dry_run.py    what a run would do
    verify.py     a verification: its steps, and what it found
    ui.py         the web page, served until Ctrl-C
    answer.py     the answer to a query
    follow.py     the changes of a view, as they come
    quarantine.py bad records: shown, exported, cleared
    bad_record_file.py bad records for other programs
    commands.py   what is asked of the owner of a root: pause, resume, stop, throttle, rescale, retry, reingest, forget
    upkeep.py     vacuum and tags, likewise
    output.py     tables for people, for pipes and for programs
    edge.py       errors → lines and exit codes
"""
