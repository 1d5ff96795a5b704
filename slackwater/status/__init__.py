"""The status of a run as values: shown by the CLI and the web page, stored in `owner.json`, exported as metrics.

Data flow: `slackwater.running` makes a `RunStatus` from the states of an attempt → `RunStatus.to_json` → `owner.json` →
`RunStatus.of_json` in other processes.

    run_status.py     RunStatus and RunReport, with their parts: sources, views, backfills, epochs, rows in memory
    startup_steps.py  the duration of each step of a start
    first_commit.py   the last steps of a start, by the state of its attempt
    trace.py          the trace of one committed epoch
    text.py           numbers in words, values of JSON
    quantities.py     counts, rates, bytes and durations as short text
    observability/    metrics and spans of a run

Invariants: values only, without I/O, outside of `observability`; public names and fields stay; a document of another
version may be refused.
"""
