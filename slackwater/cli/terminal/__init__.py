"""Output of the command line, independent of pipelines: tables and errors, on stdout and stderr.

    output.py       rows and texts: aligned on a terminal, tab-separated in a pipe, JSON with `--json`
    safe_console.py the console, on which whatever is printed is only text
    fixed_table.py  tables whose columns keep their widths while numbers change
    edge.py         an error as one line and an exit code

Invariants: nothing else in the packages writes to a terminal; text from files and stores is printed without control
characters and is no markup; an error line has no secrets.

Face: `Output`, `SafeConsole`, `fixed_table`, and `reports_errors`, the decorator of every CLI command.
"""
