"""One schema out of those of several files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from actors.formats.options import Csv
from actors.schemas.conform import conform
from actors.schemas.merged_schema import DOUBTFUL_HEADER, common_type, merged_schema
from actors.sources.source import SchemaEvolution, SourceDefinition
from actors.sources.source_schema import SchemaSample, addable_columns, kept_schema
from state.errors import SchemaError
from state.location import Location

INSTANT, CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")


def source(evolution: SchemaEvolution = "strict", *metadata: str) -> SourceDefinition:
    return SourceDefinition(
        name="s", location=Location("/in"), format=Csv(), schema_evolution=evolution, metadata=metadata
    )


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int8(), pa.int16(), pa.int16()),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.int8(), pa.float32(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.null(), pa.date32(), pa.date32()),
        (pa.date32(), INSTANT, INSTANT),
        (pa.date32(), CLOCK, CLOCK),
        (CLOCK, INSTANT, INSTANT),
        (pa.decimal128(10, 2), pa.decimal128(5, 4), pa.decimal128(12, 4)),
        (pa.int32(), pa.decimal128(5, 2), pa.decimal128(12, 2)),
        (pa.list_(pa.null()), pa.list_(pa.int8()), pa.list_(pa.int8())),
        (
            pa.struct([("a", pa.int32()), ("b", pa.null())]),
            pa.struct([("b", pa.string()), ("a", pa.int64()), ("c", pa.bool_())]),
            pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())]),
        ),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int32())),
        (pa.int64(), pa.string(), None),
        (pa.bool_(), pa.int64(), None),
        (pa.string(), pa.binary(), None),
        (pa.date32(), pa.string(), None),
        (pa.float64(), pa.decimal128(5, 2), None),
        (pa.int64(), pa.decimal128(38, 20), None),
        (pa.decimal128(38, 0), pa.decimal128(38, 38), None),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.string())]), None),
        (pa.list_(pa.int32()), pa.int32(), None),
    ],
    ids=str,
)
def test_types_are_promoted_within_their_kind(one: pa.DataType, other: pa.DataType, common: pa.DataType | None) -> None:
    assert common_type(one, other) == common
    swapped = common_type(other, one)
    if common is None or not pa.types.is_struct(common):
        assert swapped == common
    if common is not None and not pa.types.is_nested(common):
        for kind in (one, other):
            table = conform(pa.table({"c": pa.array([], kind)}), pa.schema([("c", common)]))
            assert table.schema.field("c").type == common, "a file of either type can be read"


def test_columns_are_united_by_name_in_the_order_of_first_appearance() -> None:
    merged = merged_schema(
        [
            pa.schema([("x", pa.int32()), ("n", pa.null())]),
            pa.schema([("y", pa.string()), ("x", pa.int64())]),
            pa.schema([("n", pa.date32()), ("z", pa.bool_())]),
        ]
    )
    assert merged == pa.schema([("x", pa.int64()), ("n", pa.date32()), ("y", pa.string()), ("z", pa.bool_())])


@pytest.mark.parametrize(
    ("types", "kept"),
    [
        ([pa.string(), pa.int64(), pa.int32()], pa.int64()),
        ([pa.int32(), pa.string(), pa.float64()], pa.float64()),
        ([pa.null(), pa.string(), pa.int64()], pa.string()),
        ([pa.bool_(), pa.string(), pa.int64(), pa.string(), pa.null()], pa.string()),
    ],
)
def test_of_a_column_of_several_kinds_that_of_most_files_is_taken(types: list[pa.DataType], kept: pa.DataType) -> None:
    sample = SchemaSample(source(), len(types))
    for position, kind in reversed(list(enumerate(types))):
        sample.add(f"{position}.csv", pa.schema([("x", kind)]))
    assert sample.schema() == pa.schema([("x", kept)])


def test_names_that_differ_by_case_alone_are_one_column_with_the_first_spelling() -> None:
    struct, other = pa.struct([("a", pa.int8())]), pa.struct([("A", pa.int16()), ("b", pa.int8())])
    shown = [pa.schema([("Id", pa.int8()), ("s", struct)]), pa.schema([("s", other), ("ID", pa.int16())])]
    merged = pa.struct([("a", pa.int16()), ("b", pa.int8())])
    assert merged_schema(shown) == pa.schema([("Id", pa.int16()), ("s", merged)])


def test_a_sample_is_complete_when_every_file_that_is_out_has_answered() -> None:
    sample = SchemaSample(source(), 0)
    sample.add("b", None, 2)
    assert not sample.is_complete
    sample.add("a", None, 2)
    assert (sample.is_complete, sample.shows_something) == (True, False)
    sample.add("c", pa.schema([("x", pa.null())]), 4)
    assert (sample.is_complete, sample.shows_something) == (False, True)
    sample.add("d", pa.schema([("y", pa.int8())]), 4)
    assert sample.schema() == pa.schema([("x", pa.string()), ("y", pa.int8())])


def test_a_path_that_was_sent_again_since_it_had_vanished_answers_twice() -> None:
    sample = SchemaSample(source(), 0)
    sample.add("a", None, 1)
    sample.add("a", pa.schema([("x", pa.int8())]), 2)
    assert sample.is_complete


def test_after_an_epoch_that_killed_the_first_schema_decides() -> None:
    sample = SchemaSample(source(), 5, is_hasty=True)
    sample.add("b", None)
    assert not sample.is_complete
    sample.add("a", pa.schema([("x", pa.int8())]))
    assert sample.is_complete


def test_the_paths_of_a_sample_add_columns_and_win_over_those_of_the_files() -> None:
    sample = SchemaSample(source("strict", "path", "row"), 2)
    sample.add("dt=2026-01-02/h=x/b", pa.schema([("dt", pa.string()), ("x", pa.int8())]))
    sample.add("dt=2026-01-01/h=5/a", pa.schema([("x", pa.int8())]))
    assert sample.schema() == pa.schema(
        [("x", pa.int8()), ("dt", pa.date32()), ("h", pa.string()), ("_path", pa.string()), ("_row", pa.int64())]
    )


def test_a_column_of_the_name_of_a_metadata_column_is_an_error() -> None:
    with pytest.raises(SchemaError, match=r"^source s: its files have a column _PATH; rename it, .*metadata 'path'"):
        kept_schema(source("strict", "path"), pa.schema([("_PATH", pa.int8())]))


@pytest.mark.parametrize("name", ["n`o", "`", "n.o", ""])
def test_a_name_that_lance_does_not_find_again_cannot_be_stored(name: str) -> None:
    """Lance stores a backtick and then refuses each read; it refuses each row with the others."""
    stored = replace(source(), materialize=True)
    with pytest.raises(SchemaError, match=r"^source s, column '.*': .*; declare a schema .*without materialize=True"):
        kept_schema(stored, pa.schema([("x", pa.int8()), (name, pa.int8())]))


def test_every_other_printable_character_can_be_in_a_stored_name() -> None:
    names = [f"n{chr(code)}o" for code in range(32, 127) if chr(code) not in ".`"]
    schema = pa.schema([(name, pa.int8()) for name in names])
    assert kept_schema(replace(source(), materialize=True), schema) == schema


@pytest.mark.parametrize("column", [("n\0o", pa.int8()), ("s", pa.list_(pa.struct([("n\0o", pa.int8())])))])
def test_no_name_has_a_nul_character(column: tuple[str, pa.DataType]) -> None:
    with pytest.raises(SchemaError, match="a name contains a NUL character; rename it"):
        kept_schema(source(), pa.schema([column]))


def test_a_column_with_a_dot_in_its_name_cannot_be_stored() -> None:
    """Lance would refuse each of its rows, and the run would take that for a store that does not answer."""
    dotted = pa.schema([("x", pa.int8()), ("a.b", pa.int8()), ("s", pa.struct([("c.d", pa.int8())]))])
    stored = replace(source(), materialize=True)
    with pytest.raises(SchemaError, match=r"^source s, column 'a\.b': .* without a dot, .*without materialize=True"):
        kept_schema(stored, dotted)
    assert kept_schema(source(), dotted) == dotted
    kept, others = pa.schema([("x", pa.int8())]), [dotted.field("a.b"), pa.field("y", pa.int8())]
    assert addable_columns(kept, others, stored=True).names == ["y"]
    assert addable_columns(kept, others).names == ["a.b", "y"]


def test_widen_takes_the_widest_type_of_each_kind_at_every_level() -> None:
    schema = pa.schema(
        [
            ("i", pa.int8()),
            ("u", pa.uint64()),
            ("f", pa.float32()),
            ("d", pa.decimal128(5, 2)),
            ("s", pa.struct([("a", pa.list_(pa.int16()))])),
            ("m", pa.map_(pa.int32(), pa.float32())),
            ("t", pa.string()),
            ("at", CLOCK),
        ]
    )
    assert kept_schema(source("widen"), schema).types == [
        pa.int64(),
        pa.decimal128(38, 0),
        pa.float64(),
        pa.decimal128(38, 2),
        pa.struct([("a", pa.list_(pa.int64()))]),
        pa.map_(pa.int64(), pa.float64()),
        pa.string(),
        CLOCK,
    ]
    assert kept_schema(source("strict"), schema).types[0] == pa.int8()


def test_only_columns_that_spark_can_have_are_added() -> None:
    kept = pa.schema([("id", pa.int64())])
    others = [
        pa.field("ID", pa.int8()),
        pa.field("nothing", pa.null()),
        pa.field("clock", pa.time64("us")),
        pa.field("__sw_x", pa.int8()),
        pa.field("", pa.int8()),
        pa.field("new", pa.uint16()),
        pa.field("New", pa.uint16()),
    ]
    assert addable_columns(kept, others) == pa.schema([("new", pa.int32())])


def test_a_row_as_first_line_of_a_file_names_no_columns_of_the_source() -> None:
    sample = SchemaSample(source(), 2)
    sample.add("a.csv", pa.schema([("1", pa.int64())], metadata={DOUBTFUL_HEADER: b"true"}))
    sample.add("b.csv", pa.schema([("id", pa.int64())]))
    assert sample.schema() == pa.schema([("id", pa.int64())])
