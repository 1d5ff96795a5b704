"""Benchmarks, side by side with others: the source of `docs/benchmarks.md`.

    python -m benchmarks [--quick] [--only NAME ...] [--write]      all of them, or these
    python -m benchmarks.NAME [its own options]                     one of them

Data flow: the catalogue names each benchmark, its arguments and its time limit → the runner starts each in a process
of its own, whose result comes back as JSON → a record (command, day, machine, seconds, result or failure) is merged
into `build/benchmarks/`, and with `--write` into `benchmarks/results/` → the page is rewritten from all records,
with its plots in `images/` beside it.

A new benchmark is:

* a module `benchmarks/NAME.py`: `measure(options) -> Result`, and a `main` that calls `run_benchmark`;
* a text `benchmarks/prose/NAME.md`: a heading, what is compared, a line `<!-- results -->`, what it means;
* an entry in `catalogue.py`, with the arguments of its quick form if it is to have one.

Invariants:

* Every contender has a process of its own; starting it is told apart from its work; all answers are compared.
* A target is a count, or a ratio to a contender or to the calibration of the same run: a slower machine meets it too.
* A number on the page stands beside the command that made it, its day and its machine.
* A benchmark that fails or takes too long is said to have failed; what it found before stays, with its day.

    result.py     Result: tables, numbers with units, ratios, targets, points of plots
    command.py    run_benchmark: a benchmark as a command
    catalogue.py  which benchmarks there are
    runner.py     one benchmark in a process of its own, with a time limit
    record.py     Record, Archive: what was found when, where, and by which command
    page.py       the page; line_chart.py and bar_chart.py its plots; prose/ its text; readme.py the README's sentence
    contenders/   what others do with the same files
    machine.py    what a number was measured on; cpu_meter.py what it cost
    calibration.py  the speed of the machine: targets in seconds become ratios to it
    realistic_pipelines.py, realistic_run.py, realistic_restart.py   pipelines, and runs of them, for realistic.py
    events.py, line_items.py, paused_run.py, plain_spark.py, delay_line.py, directory_size.py   what several use
"""
