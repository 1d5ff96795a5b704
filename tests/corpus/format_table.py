"""The page with the table of formats, from the corpus: `python -m tests.corpus.format_table` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.corpus.case import Case, Lines
from tests.corpus.cases import CASES
from tests.corpus.reasons import REASONS
from tests.corpus.record import ENGINES, recorded, versions
from tests.repository import REPOSITORY

PAGE = REPOSITORY / "docs/guide/format-table.md"
_NAMES = {"spark": "Spark", "duckdb": "DuckDB", "pyarrow": "pyarrow"}
_FORMATS = {
    "csv": "CSV",
    "json": "JSON",
    "parquet": "Parquet",
    "orc": "ORC",
    "avro": "Avro",
    "text": "Text",
    "debezium": "Debezium",
}
_MOST = 60
_NO_ANSWER = ("no reader", "no such option", "refused", "crashed")


def is_different(case: Case, other: Lines) -> bool:
    """True if an engine reads rows with other values than ours."""
    return not other[0].startswith(_NO_ANSWER) and other[1:] != case.ours[1:]


def lacks_reason(case: Case, others: Iterable[Lines]) -> bool:
    """True if an engine reads other values, and no reason is written."""
    return case.title not in REASONS and any(is_different(case, each) for each in others)


def page() -> str:
    """The text of the page."""
    known = recorded()
    sections = [_HEAD.format(**versions())]
    for name, title in _FORMATS.items():
        sections.append(_section(title, [case for case in CASES if case.format.name == name], known))
    return "\n\n".join(sections) + "\n"


_HEAD = """\
# Table of formats

Each row is a small file of `tests/corpus`, and the table is generated from the tests. Every test run compares
the column of Slackwater with its readers. The other columns are recorded results of Spark {spark}, DuckDB {duckdb}
and pyarrow {pyarrow}. Each engine reads the same bytes with the option that is nearest to ours, and with its defaults
otherwise. See [sources](sources.md) for the options, and [schemas](schema.md) for declared types. In a file,
↵ is a line feed.

| Slackwater | |
|---|---|
| exact | every value is read as it is in the file |
| converted | a value is changed, because an option asks for it |
| bad record | a record is [quarantined](quarantine.md); the others are read |
| refused | the file is quarantined |

| other engines | |
|---|---|
| same | the same rows |
| other types | the same values, in a column of another type |
| no option | the engine has no option for such a file |
| – | the engine has no reader of the format without a further package |
| refused, crashes | the engine raises an error, or ends its process |"""


def _section(title: str, cases: Sequence[Case], known: Mapping[str, Mapping[str, Lines]]) -> str:
    columns = " | ".join(_NAMES[engine] for engine in ENGINES)
    lines = [f"## {title}", "", f"| file | declared | Slackwater | {columns} | difference and reason |"]
    lines.append("|---" * (4 + len(ENGINES)) + "|")
    for case in cases:
        others = [known[case.title][engine] for engine in ENGINES]
        cells = [
            f"{case.name}{_content(case)}",
            _declared(case),
            f"{case.outcome}{_values(case.ours) if case.outcome in ('exact', 'converted') else ''}",
            *(_other(case, each) for each in others),
            REASONS.get(case.title, ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _content(case: Case) -> str:
    """The text of a file, if it is text that a page can show."""
    try:
        text = case.content.decode() if isinstance(case.content, bytes) else ""
    except UnicodeDecodeError:
        return ""
    if not text or "\0" in text or text.startswith("\ufeff"):
        return ""
    for control, sign in (("\n", "↵"), ("\r", "␍"), ("\t", "⇥")):
        text = text.replace(control, sign)
    return f": {_code(text)}"


def _code(text: str) -> str:
    """Text as code in a cell of a table."""
    text = text if len(text) <= _MOST else f"{text[:_MOST]}…"
    fence = "``" if "`" in text else "`"
    return f"{fence}{text.replace('|', chr(92) + '|')}{fence}"


def _declared(case: Case) -> str:
    given = [f"{name}={value!r}" for name, value in case.options.items()]
    if case.schema is not None:
        given.append(case.schema)
    if case.timestamps != "exact":
        given.append(f'timestamps="{case.timestamps}"')
    return ", ".join(map(_code, given))


def _values(lines: Lines) -> str:
    return f": {_code(', '.join(lines[1:]))}" if len(lines) > 1 else ""


def _other(case: Case, lines: Lines) -> str:
    match lines[0].partition(":")[0]:
        case "no reader":
            return "–"
        case "no such option":
            return "no option"
        case "refused":
            return "refused"
        case "crashed":
            return "crashes"
    if lines[1:] != case.ours[1:] or case.outcome == "refused":
        return _code(", ".join(lines[1:]) or "no rows")
    ours, theirs = ([part.rpartition(" ")[2] for part in each[0].split(", ")] for each in (case.ours, lines))
    return "same" if ours == theirs else "other types"


def main() -> None:
    """Writes the page."""
    Path(PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
