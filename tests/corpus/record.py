"""Records what Spark, DuckDB and pyarrow read: `python -m tests.corpus.record [ENGINE...]`; about a minute for all."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.corpus.case import Lines
from tests.corpus.cases import CASES
from tests.corpus.others import readings_of

RECORDED = Path(__file__).parent / "recorded.json"
ENGINES = ("spark", "duckdb", "pyarrow")


def recorded() -> Mapping[str, Mapping[str, Lines]]:
    """Case → engine → its reading."""
    content = _content()["cases"]
    return {case: {engine: tuple(lines) for engine, lines in each.items()} for case, each in content.items()}


def versions() -> Mapping[str, str]:
    """Engine → the version that read the cases."""
    content: Mapping[str, str] = _content()["versions"]
    return content


def _content() -> Any:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def main(engines: Sequence[str] = ENGINES) -> None:
    """Reads each case with each engine; the results of other engines stay."""
    read = {engine: readings_of(engine) for engine in engines or ENGINES}
    old, of_versions = (recorded(), dict(versions())) if RECORDED.exists() else ({}, {})
    cases = {}
    for case in CASES:
        each = {**old.get(case.title, {}), **{engine: lines[case.title] for engine, lines in read.items()}}
        cases[case.title] = {engine: each[engine] for engine in ENGINES if engine in each}
    of_versions |= {engine: version("pyspark" if engine == "spark" else engine) for engine in read}
    content = {"versions": dict(sorted(of_versions.items())), "cases": cases}
    RECORDED.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
