"""Deliberate faults in the reader of CSV."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_RECORDS = "actors/formats/text/csv_records.py"
_READER = "actors/formats/text/csv.py"
_VALUES = "actors/formats/text/csv_values.py"
_TYPES = "actors/formats/text/csv_types.py"
_HABITS = "tests/actors/formats/test_csv_habits.py"
_FAULTS = "tests/actors/formats/test_csv_records.py::test_faults_end_with_their_line_wherever_the_text_is_cut"

CSV_MUTANTS = (
    Mutant(
        "a first line with any quotes is a record",
        _RECORDS,
        (("self._line.fullmatch(line) is not None", "True"),),
        shown_by=_FAULTS,
    ),
    Mutant(
        "bytes that are not text name columns",
        _READER,
        (("        if self._format.header and not self._is_old:\n", "        if False:\n"),),
        shown_by=f"{_HABITS}::test_bytes_that_are_not_text_name_no_column",
    ),
    Mutant(
        "a file of CSV without a record shows a schema",
        _READER,
        (("            self._require_a_record(first_block, parser, found.values())\n", ""),),
        shown_by=f"{_HABITS}::test_a_file_whose_records_have_other_numbers_of_fields_shows_no_schema",
    ),
    Mutant(
        "each bad line of CSV is searched alone",
        "actors/formats/text/rows.py",
        (("    reasons = parser.faults(texts)\n", "    reasons: dict[int, str] = {}\n"),),
        shown_by=f"{_HABITS}::test_the_cost_of_bad_lines_does_not_depend_on_their_number",
    ),
    Mutant(
        "each fault of quotes takes a window",
        _RECORDS,
        (("            if window.fault is not None and self.escape is None and", "            if False and"),),
        shown_by=f"{_HABITS}::test_the_cost_of_bad_lines_does_not_depend_on_their_number",
    ),
    Mutant(
        "records found one by one behind a fault lose the next fault",
        _RECORDS,
        (('                return end, QuoteFault(start, opening, "text", is_escaped)\n', "                pass\n"),),
        shown_by=_FAULTS,
    ),
    Mutant(
        "a header of CSV has any number of columns",
        _READER,
        ((">= self._limits.max_columns:", ">= 1 << 60:"),),
        shown_by="tests/actors/formats/test_hostile_files.py::test_a_header_of_csv_has_limits",
    ),
    Mutant(
        "a header of CSV has any length",
        _READER,
        (("            if len(text) > most_bytes:\n", "            if False:\n"),),
        shown_by="tests/actors/formats/test_hostile_files.py::test_a_header_of_csv_has_limits",
    ),
    Mutant(
        "a quoted text is null",
        _VALUES,
        (("self._as_text, are_quoted_null=is_old)", "self._as_text, are_quoted_null=True)"),),
        shown_by=f"{_HABITS}::test_only_an_unquoted_empty_field_is_null",
    ),
    Mutant(
        "a quoted empty field in a column of numbers is a bad record",
        _VALUES,
        (("((texts, False), (others, True))", "((texts, False), (others, False))"),),
        shown_by=f"{_HABITS}::test_a_quoted_empty_field_has_no_number",
    ),
    Mutant(
        "hexadecimal text is an integer",
        _VALUES,
        (("        if has_hexadecimal and self._integers and not self._is_old:\n", "        if False:\n"),),
        shown_by=f"{_HABITS}::test_hexadecimal_text_is_no_integer",
    ),
    Mutant(
        "a leading zero is a number",
        _TYPES,
        (('_INTEGER = r"^\\s*-?(0|[1-9]\\d*)\\s*$"', '_INTEGER = r"^\\s*-?\\d+\\s*$"'),),
        shown_by=f"{_HABITS}::test_an_inferred_type_keeps_every_value",
    ),
    Mutant(
        "a large integer in a column with fractions is a double",
        _TYPES,
        (("        if len(integers) and _integer(integers) != pa.int64():\n", "        if False:\n"),),
        shown_by=f"{_HABITS}::test_an_inferred_type_keeps_every_value",
    ),
    Mutant(
        "zeros below microseconds are lost digits",
        "actors/schemas/conform.py",
        (('_ZEROS_BELOW_MICROSECONDS, r"\\1\\2").cast(wanted)', '_ZEROS_BELOW_MICROSECONDS, r"\\0").cast(wanted)'),),
        shown_by=f"{_HABITS}::test_zeros_below_microseconds_lose_nothing",
    ),
    Mutant(
        "an open quote at the end of a text is closed by it",
        _RECORDS,
        (("            if is_end or (stop - record", "            if False or (stop - record"),),
        shown_by=f"{_HABITS}::test_an_unclosed_quote_is_a_bad_record_and_the_rows_behind_it_are_read",
    ),
    Mutant(
        "a fault is not looked for in lines that parse",
        _READER,
        (("and plain is text and not self._is_simple(text, table):", "and False:"),),
        shown_by=f"{_HABITS}::test_a_quote_behind_a_closed_field_is_not_lost",
    ),
    Mutant(
        "a run of quotes at the end of a window is complete",
        _RECORDS,
        (
            (
                "        wrong = np.flatnonzero(closes & (behind < stop))\n",
                "        wrong = np.flatnonzero(closes & (behind < len(content)))\n",
            ),
        ),
        shown_by=_FAULTS,
    ),
    Mutant(
        "the end of a text shows its last record in spite of a fault",
        _RECORDS,
        ((" or behind + int(first.ends[0]) != line[0]:", ":"),),
        shown_by="tests/actors/formats/test_csv_records.py::test_a_fault_before_the_end_of_a_text_is_seen_from_the_end",
    ),
    Mutant(
        "an escape before an escape is kept",
        _RECORDS,
        (("        kept[escapes[(number % 2 == 0) & ~is_last]] = False\n", ""),),
        shown_by=f"{_HABITS}::test_files_of_sparks_writer_are_read_with_a_backslash",
    ),
    Mutant(
        "a quote in a comment opens a field",
        _RECORDS,
        (
            ("        if self.comment is None:\n", "        if True:\n"),
            ("            if quoted.any():\n", "            if False:\n"),
        ),
        shown_by=f"{_HABITS}::test_a_quote_in_a_comment_opens_no_field",
    ),
    Mutant(
        "a row as first line names the columns of a source",
        "actors/sources/source_schema.py",
        (("with_headers(self._schemas())", "self._schemas()"),),
        shown_by="tests/actors/schemas/test_merged_schema.py::"
        "test_a_row_as_first_line_of_a_file_names_no_columns_of_the_source",
    ),
    Mutant(
        "a new default of null markers applies to sources that exist",
        "actors/sources/source.py",
        (("            format = replace(format, null_values=recorded.format.null_values)\n", "            pass\n"),),
        shown_by="tests/actors/recovery/test_catalog_changes.py::"
        "test_a_csv_source_of_an_earlier_version_keeps_its_null_markers",
    ),
)
