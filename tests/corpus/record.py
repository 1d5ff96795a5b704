"""Records what Spark, DuckDB and pyarrow read: `python -m tests.corpus.record [ENGINE...]`; about a minute for all."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from tests.corpus.case import Lines
from tests.corpus.cases import CASES
from tests.corpus.others import by_spark, readings_of

RECORDED = Path(__file__).parent / "recorded.json"
ENGINES = ("spark", "duckdb", "pyarrow")


def recorded() -> Mapping[str, Mapping[str, Lines]]:
    """Case → engine → what the engine reads."""
    content = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {case: {engine: tuple(lines) for engine, lines in each.items()} for case, each in content.items()}


def _of_spark() -> Mapping[str, Lines]:
    spark = start_local_session(SparkSettings(), "corpus")
    found = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as directory:
            found[case.title] = by_spark(case, Path(directory), spark)
    # Spark ends with this process.
    return found


def main(engines: Sequence[str] = ENGINES) -> None:
    """Reads each case with each engine; the results of other engines stay."""
    read = {engine: _of_spark() if engine == "spark" else readings_of(engine) for engine in engines or ENGINES}
    old = recorded() if RECORDED.exists() else {}
    content = {}
    for case in CASES:
        each = {**old.get(case.title, {}), **{engine: lines[case.title] for engine, lines in read.items()}}
        content[case.title] = {engine: each[engine] for engine in ENGINES if engine in each}
    RECORDED.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
