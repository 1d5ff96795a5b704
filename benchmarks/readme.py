"""The sentence on speed in the README, from the result of the benchmark `realistic`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.record import Record

NAME = "realistic"
ROW, OURS, SPARK = "demo, 5,000 rows", "warm", "Spark's batch"
_BEFORE, _AFTER = "<!-- speed -->", "<!-- /speed -->"


def speed_sentence(record: Record) -> str:
    """The sentence; empty if the benchmark has not measured that row."""
    for table in record.result.tables if record.result else ():
        for row in table.rows:
            if row.name == ROW and {OURS, SPARK} <= set(table.columns):
                ours, spark = (row.numbers[table.columns.index(column)] for column in (OURS, SPARK))
                return (
                    f"Six new files with 5,000 flights are in all seven views of the demo {ours} after they appear. "
                    f"A warm Spark batch of the same queries over these six files takes {spark} "
                    "([benchmarks](docs/benchmarks.md#realistic-pipelines))."
                )
    return ""


def write_speed(record: Record, readme: Path) -> None:
    """Replaces the sentence in the README; leaves it if the benchmark has not measured that row."""
    text, sentence = readme.read_text(encoding="utf-8"), speed_sentence(record)
    before, _, rest = text.partition(_BEFORE)
    _, mark, after = rest.partition(_AFTER)
    if not mark:
        raise ValueError(f"{readme} lacks {_BEFORE} or {_AFTER}")
    if sentence:
        readme.write_text(f"{before}{_BEFORE}\n{sentence}\n{mark}{after}", encoding="utf-8")
