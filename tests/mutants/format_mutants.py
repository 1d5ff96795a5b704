"""Deliberate faults in readers of Avro and ORC."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_CONTAINER = "actors/formats/avro/container.py"
_AVRO = "tests/actors/formats/test_avro.py"
_PARQUET = "tests/actors/formats/test_parquet.py"
_FOREIGN = "tests/actors/formats/test_foreign_content.py"
_ORC = "tests/actors/formats/test_orc.py"
_CONTRACT = "tests/actors/formats/test_reader_contract.py"

_LAYOUTS = "tests/actors/formats/test_json_layouts.py"
_HOSTILE = "tests/actors/formats/test_hostile_files.py"
_JSON_TYPES = "tests/actors/formats/test_json_types.py"

FORMAT_MUTANTS = (
    Mutant(
        "half of a surrogate pair in a name of JSON is an unexpected error",
        "actors/formats/text/json_schema.py",
        (("    if _SURROGATE.search(text):\n", "    if False:\n"),),
        shown_by=f"{_JSON_TYPES}::test_half_of_a_surrogate_pair_in_a_name_is_a_bad_record",
    ),
    Mutant(
        "fields of structs in JSON match by exact names",
        "actors/formats/text/json_names.py",
        (("FileNames(list(kind), rule, names, are_nested=True) if", "None if"),),
        shown_by=f"{_JSON_TYPES}::test_fields_of_structs_match_in_any_case",
    ),
    Mutant(
        "a field that no record of JSON has is null without a report",
        "actors/formats/text/json.py",
        (("        if not rows.first_row and self._absent:\n", "        if False:\n"),),
        shown_by="tests/actors/reading/test_file_columns.py::test_a_column_that_no_json_record_has_is_reported",
    ),
    Mutant(
        "CSV in a Parquet source is not named",
        "actors/formats/signatures.py",
        (("        found = delimited_format(head)\n", "        found = None\n"),),
        shown_by=f"{_FOREIGN}::test_csv_in_a_binary_source_is_named",
    ),
    Mutant(
        "an array of JSON that was cut off is a whole file",
        "actors/formats/text/json_records.py",
        (("        if self.is_last and is_inside and self.error is None:\n", "        if False:\n"),),
        shown_by=f"{_LAYOUTS}::test_a_damaged_array_ends_the_file_behind_its_elements",
    ),
    Mutant(
        "a cut line of JSON takes the following lines with it",
        "actors/formats/text/json_records.py",
        (
            (
                "            if is_broken:\n                return self._add_broken(start)\n        elif",
                "            if is_broken:\n                return None\n        elif",
            ),
        ),
        shown_by=f"{_LAYOUTS}::test_a_bad_record_takes_no_other_with_it",
    ),
    Mutant(
        "the search for records of JSON takes any time",
        "actors/formats/text/json_records.py",
        (("        if self._steps % _STEPS == 0:\n", "        if False:\n"),),
        shown_by=f"{_HOSTILE}::test_every_search_for_records_looks_at_the_time",
    ),
    Mutant(
        "each open bracket of JSON is searched for its end again",
        "actors/formats/text/json_records.py",
        (("        if start in self._open and (", "        if False and ("),),
        shown_by=f"{_HOSTILE}::test_lines_that_open_brackets_are_searched_in_linear_time",
    ),
    Mutant(
        "missing elements of a JSON array do not count as bad records",
        "actors/formats/text/json_rows.py",
        (("        if len(reasons) > most_bad:\n            one_more", "        if False:\n            one_more"),),
        shown_by=f"{_HOSTILE}::test_missing_elements_of_an_array_count_as_bad_records",
    ),
    Mutant(
        "each line of a long JSON object copies the lines before it",
        "actors/formats/text/json_rows.py",
        (("and rest and not least_bytes and", "and rest and"),),
        shown_by=f"{_HOSTILE}::test_an_object_over_many_pieces_is_copied_a_few_times",
    ),
    Mutant(
        "blank lines before JSON stay in memory",
        "actors/formats/text/json_rows.py",
        (("blank = blank_bytes(text) if self._of_array is None else 0", "blank = 0"),),
        shown_by=f"{_HOSTILE}::test_blank_lines_before_the_first_record_take_no_memory",
    ),
    Mutant(
        "each JSON column of several kinds costs a parse",
        "actors/formats/text/json_values.py",
        (("        if self._num_errors > _MOST_ERRORS:\n", "        if False:\n"),),
        shown_by=f"{_JSON_TYPES}::test_many_columns_of_several_kinds_take_a_few_parses",
    ),
    Mutant(
        "a large integer of JSON is inferred as a double",
        "actors/formats/text/json_schema.py",
        (("return pa.string() if precision is None else pa.decimal128(precision, 0)", "return pa.float64()"),),
        shown_by=f"{_JSON_TYPES}::test_a_column_gets_a_type_that_loses_nothing",
    ),
    Mutant(
        "a map of JSON has a key twice",
        "actors/formats/text/json_values.py",
        (("        _require_different(entries.owners, names)\n", ""),),
        shown_by=f"{_JSON_TYPES}::test_a_map_that_is_none_is_a_bad_record",
    ),
    Mutant(
        "a bug of a reader ends the actor",
        "actors/reading/open_file.py",
        (("    except Exception as error:\n", "    except ImportError as error:\n"),),
        shown_by="tests/actors/reading/test_open_file.py",
    ),
    Mutant(
        "a value that looks like an encrypted column is refused",
        "actors/formats/parquet/encryption.py",
        (("    if is_suspect and _has_encrypted_columns(footer(footer_bytes)):\n", "    if is_suspect:\n"),),
        shown_by=f"{_PARQUET}::test_a_plain_file_with_the_bytes_of_an_encrypted_column_is_read",
    ),
    Mutant(
        "far times of INT96 are read in nanoseconds",
        "actors/formats/parquet/int96.py",
        (("        if not _is_outside(us):\n", "        if True:\n"),),
        shown_by=f"{_PARQUET}::test_int96_outside_of_nanoseconds_is_read_in_microseconds",
    ),
    Mutant(
        "digits below microseconds are left out if their column has a far time of INT96",
        "actors/formats/parquet/int96.py",
        (("            is_lossy |= _lossy(us, ns)\n", "            pass\n"),),
        shown_by=f"{_PARQUET}::test_digits_of_int96_below_microseconds_make_a_bad_record_as_ever",
    ),
    Mutant(
        "the first bytes of a text are not checked",
        "actors/formats/text/content.py",
        (("        require_text(head, declared)\n", "        pass\n"),),
        shown_by=f"{_FOREIGN}::test_binary_content_is_named",
    ),
    Mutant(
        "the first bytes of compressed text are not decompressed for the check",
        "actors/formats/text/content.py",
        (("            head = self._ahead\n", "            pass\n"),),
        shown_by=f"{_FOREIGN}::test_content_inside_of_a_compression_is_named",
    ),
    Mutant(
        "text behind the first error of gzip begins again",
        "actors/formats/text/compression.py",
        (("            self._skip(self._by_python)\n", ""),),
        shown_by="tests/actors/formats/test_compressed_text.py",
    ),
    Mutant(
        "a lack of memory is the fault of the file",
        "actors/reading/open_file.py",
        (("(SlackwaterError, NewColumns, MemoryError)", "(SlackwaterError, NewColumns)"),),
        shown_by="tests/actors/reading/test_open_file.py",
    ),
    Mutant(
        "a file without a good line is read where its source has a schema",
        "actors/formats/salvage.py",
        (("                infer_schema()\n", "                pass\n"),),
        shown_by="tests/actors/formats/test_json.py",
    ),
    Mutant(
        "columns that a file lacks are not told",
        "actors/formats/template.py",
        (("missing=missing, renamed", "missing=(), renamed"),),
        shown_by="tests/actors/formats/test_other_columns.py",
    ),
    Mutant(
        "a block of Avro that does not end with the marker is read",
        _CONTAINER,
        (("if stored[block.data_bytes :] != self._sync:", "if False:"),),
        shown_by=f"{_AVRO}::test_damage_is_named_with_its_place",
    ),
    Mutant(
        "a block of Avro that the file cuts off is no damage",
        _CONTAINER,
        (
            (
                '                raise self._damaged(block.start, "the file ends within it")\n',
                "                return\n",
            ),
        ),
        shown_by=f"{_AVRO}::test_damage_is_named_with_its_place",
    ),
    Mutant(
        "rows of Avro behind an anchor count from the begin of the file",
        "actors/formats/avro/avro_reader.py",
        (("        row = offset.anchor_row\n", "        row = 0\n"),),
        shown_by=_CONTRACT,
    ),
    Mutant(
        "blocks of Avro may become as large as they like",
        "actors/formats/compressed.py",
        (("        if len(plain) > most_bytes:\n", "        if False:\n"),),
        shown_by=f"{_AVRO}::test_a_block_that_decompresses_to_more_than_the_limit_is_refused",
    ),
    Mutant(
        "stripes of ORC before the offset are fetched",
        "actors/formats/orc/orc_reader.py",
        (("            if end > offset_rows and info.num_rows\n", "            if info.num_rows\n"),),
        shown_by=f"{_ORC}::test_stripes_before_the_offset_are_not_fetched",
    ),
    Mutant(
        "room is made for every length that ORC claims",
        "actors/formats/orc/stripe.py",
        (("            return rows * _TEXT_BYTES + 2 * own.of(rows)\n", "            return rows * _TEXT_BYTES\n"),),
        shown_by=_ORC,
    ),
)
