"""Output of the command line, independent of pipelines: tables and errors, on stdout and stderr.

    output.py       rows and texts: aligned on a terminal, tab-separated in a pipe, JSON with `--json`
    safe_console.py the console, which prints only plain text
    fixed_table.py  tables whose columns keep their widths
    edge.py         errors as one line and an exit code

Invariants:

* No other package writes to a terminal.
* Text from files and stores is printed without control characters, and is never parsed as markup.
* An error line has no secrets.

Face: `Output`, `SafeConsole`, `fixed_table`, and `reports_errors`, the decorator of every CLI command.
"""
