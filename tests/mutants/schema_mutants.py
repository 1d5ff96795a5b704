"""Faults of the schemas of sources: names, missing columns, columns without a value."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_NAMES = "actors/schemas/column_names.py"
_TEST_NAMES = "tests/actors/schemas/test_column_names.py"
_TEST_FILES = "tests/actors/formats/test_names_of_columns.py"

SCHEMA_MUTANTS = (
    Mutant(
        "each missing column makes a list of all names",
        "actors/schemas/conform.py",
        (("            if field.name in given:\n", "            if field.name in table.schema.names:\n"),),
        shown_by="tests/actors/schemas/test_conform.py::test_missing_columns_cost_linear_time",
    ),
    Mutant(
        "a column without a name keeps its empty name",
        _NAMES,
        (('        return f"_c{position}"\n', "        return name\n"),),
        shown_by=_TEST_NAMES,
    ),
    Mutant(
        "a renamed column takes the name of another column",
        _NAMES,
        ((" or (name != given and folded in in_file)", ""),),
        shown_by=_TEST_NAMES,
    ),
    Mutant(
        "two columns of a file match one of the source",
        _NAMES,
        (("if matching and not known.issuperset(unique[position] for position in same):", "if False:"),),
        shown_by=_TEST_NAMES,
    ),
    Mutant(
        "an earlier source matches in any case",
        _NAMES,
        (('"exact": str}', '"exact": str.lower}'),),
        shown_by=_TEST_FILES,
    ),
    Mutant(
        "a column and a directory with its name in another case are in the schema twice",
        "actors/sources/source_schema.py",
        (("if field.name.lower() not in named_by_path", "if field.name not in named_by_path"),),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a file without a column of the key shows a schema",
        "actors/reading/open_file.py",
        (("            kept_schema(self._source, schema, [self._file.path])\n", ""),),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a strict source reads a missing column as null",
        "actors/reading/open_file.py",
        (("        if missing:\n            raise", "        if False:\n            raise"),),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a strict source of JSON reads a missing field as null",
        "actors/reading/open_file.py",
        (("if not self._source.shows_columns and not rows.first_row", "if False"),),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a file that was read before is judged by the strict mode",
        "actors/reading/open_file.py",
        (('source.evolution == "strict" and now is not None', 'source.evolution == "strict"'),),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a source of an earlier version gets the rules of a new one",
        "actors/sources/source.py",
        (("rules=recorded.rules, ", ""),),
        shown_by="tests/actors/recovery/test_catalog_changes.py",
    ),
    Mutant(
        "every column of text takes numbers",
        "actors/schemas/conform.py",
        (
            (
                "    if is_open(field) and _has_text(found):\n",
                "    if field.type == pa.string() and _has_text(found):\n",
            ),
        ),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a column without a value in the sample refuses numbers",
        "actors/sources/source_schema.py",
        (("column if is_open(column) else field", "field"),),
        shown_by="tests/actors/reading/test_file_columns.py",
    ),
    Mutant(
        "a column that files lack is not reported in the commit of their rows",
        "actors/coordination/epoch_commits.py",
        (("for each in report.unmatched]", "for each in report.unmatched if not each.is_missing]"),),
    ),
    Mutant(
        "new rows of a static table match by equal names alone",
        "slackwater/tables/static_table.py",
        (("source_names(rows.column_names, schema.names)", 'source_names(rows.column_names, schema.names, "exact")'),),
        shown_by="tests/slackwater/tables/test_static_table.py",
    ),
    Mutant(
        "the bytes of a column with a dot in its name are not fetched",
        "actors/formats/parquet/bounds.py",
        (("range(1, len(parts) + 1)", "range(1, 2)"),),
        shown_by=_TEST_FILES,
    ),
)
