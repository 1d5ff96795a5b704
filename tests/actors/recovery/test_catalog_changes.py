"""The schema of a source under a declaration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.formats.options import Csv, Json
from actors.recovery.catalog_changes import CatalogChanges
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.row_key import Key
from actors.sources.source import RULES, SourceDefinition
from state.errors import DefinitionChangedError, SchemaError
from state.tables.catalog import Catalog
from state.tables.records import CatalogSource
from tests.actors.recovery.root_with_files import definition

_X = pa.schema([("x", pa.int32())])


def declared(root: Path, **options: Any) -> PipelineDefinition:
    made = definition(root, "s", schema=_X)
    return replace(made, sources=(replace(made.sources[0], **options),))


def kept(made: PipelineDefinition, schema: pa.Schema) -> CatalogChanges:
    """A catalog in which the source of a declaration has a schema."""
    source = CatalogSource("s", made.sources[0].to_json(), schema.serialize().to_pybytes())
    return CatalogChanges(Catalog(sources={"s": source}))


def test_a_declared_schema_is_kept_with_what_is_made_for_it(tmp_path: Path) -> None:
    changes = CatalogChanges(Catalog())
    changes.declare(declared(tmp_path, metadata=("row",), schema_evolution="widen"), 0)
    assert changes.schemas["s"] == pa.schema([("x", pa.int64()), ("_row", pa.int64())])


def test_a_declared_column_of_the_name_of_a_metadata_column_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("_row", pa.int64())])
    with pytest.raises(SchemaError, match="column _row; rename it"):
        CatalogChanges(Catalog()).declare(declared(tmp_path, metadata=("row",), schema=schema), 0)


def test_columns_that_were_added_do_not_change_the_declaration(tmp_path: Path) -> None:
    made = declared(tmp_path, metadata=("row",), schema_evolution="add_columns")
    longer = pa.schema([("x", pa.int32()), ("_row", pa.int64()), ("added", pa.string())])
    changes = kept(made, longer)
    changes.declare(made, 1)
    assert changes.schemas["s"] == longer


@pytest.mark.parametrize(
    "schema", [pa.schema([("x", pa.int64())]), pa.schema([("y", pa.int32()), ("x", pa.int32())]), pa.schema([])]
)
def test_another_schema_than_the_kept_one_is_refused(schema: pa.Schema, tmp_path: Path) -> None:
    made = declared(tmp_path)
    with pytest.raises(DefinitionChangedError, match="source s has the schema"):
        kept(made, schema).declare(made, 1)


def test_other_metadata_is_another_declaration(tmp_path: Path) -> None:
    with pytest.raises(
        DefinitionChangedError, match=r'source s: metadata was not given, and is now \["row"\]; declare'
    ):
        kept(declared(tmp_path), _X).declare(declared(tmp_path, metadata=("row",)), 1)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"format": Csv()}, {"format": Csv(delimiter=";")}, r'format delimiter was ",", and is now ";"'),
        ({"format": Csv(delimiter=";")}, {"format": Json()}, r'format was "csv", and is now "json"'),
        (
            {"metadata": ("path", "row"), "key": Key("id", order_by="at"), "pattern": "a*"},
            {"metadata": ("path", "row"), "key": Key(("id", "k")), "pattern": "b*"},
            r'pattern was "a\*", and is now "b\*"; key was \["id"\], and is now \["id", "k"\]; '
            r'Key\(order_by\) was \["at"\], and is now not given',
        ),
    ],
)
def test_a_changed_source_is_told_by_the_arguments_that_differ(
    before: dict[str, Any], now: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DefinitionChangedError, match=f"^source s: {said}; declare it as it was"):
        kept(declared(tmp_path, **before), _X).declare(declared(tmp_path, **now), 1)


def test_another_treatment_of_columns_is_recorded_and_does_not_change_the_source(tmp_path: Path) -> None:
    changes = kept(declared(tmp_path), _X)
    changes.declare(declared(tmp_path, schema_evolution="lenient"), 1)
    (row,) = [row for row in changes.take_delta([]).tables["catalog"]["row"].to_pylist() if row["kind"] == "source"]
    recorded = SourceDefinition.of_json("s", row["definition"])
    assert recorded.evolution == "lenient" and declared(tmp_path).sources[0].as_recorded(row["definition"]) == replace(
        declared(tmp_path).sources[0], schema_evolution="lenient"
    )


def test_a_source_of_an_earlier_version_keeps_its_rules(tmp_path: Path) -> None:
    new = declared(tmp_path).sources[0]
    recorded = json.loads(new.to_json())
    assert (recorded.pop("rules"), recorded.pop("evolution")) == (RULES, "strict")
    old = CatalogSource("s", json.dumps(recorded, sort_keys=True), _X.serialize().to_pybytes())
    changes = CatalogChanges(Catalog(sources={"s": old}))
    changes.declare(declared(tmp_path), 1)
    written = changes.take_delta([]).tables.get("catalog")
    rows = [] if written is None else written["row"].to_pylist()
    assert {row["definition"] for row in rows if row["kind"] == "source"} <= {old.definition}
    kept_rules = new.as_recorded(old.definition)
    assert (kept_rules.rules, kept_rules.names, kept_rules.evolution) == (1, "exact", "lenient")
    assert kept_rules.to_json() == old.definition


def test_a_csv_source_of_an_earlier_version_keeps_its_null_markers(tmp_path: Path) -> None:
    new = declared(tmp_path, format=Csv()).sources[0]
    nulls = ["", "NA", "NULL", "null", "NaN", "nan"]
    options = {"name": "csv", "delimiter": ",", "quote": '"', "header": True, "null_values": nulls, "encoding": "utf-8"}
    definition = json.dumps({"url": new.location.url, "format": options, "pattern": new.pattern}, sort_keys=True)
    catalog = Catalog(sources={"s": CatalogSource("s", definition, _X.serialize().to_pybytes())})
    CatalogChanges(catalog).declare(declared(tmp_path, format=Csv()), 1)
    recorded = new.as_recorded(definition)
    assert (recorded.format, recorded.names) == (Csv(null_values=tuple(nulls)), "exact")
    given = declared(tmp_path, format=Csv(null_values=("",)))
    with pytest.raises(DefinitionChangedError, match=r"format null_values was .*\"NA\".*, and is now"):
        CatalogChanges(catalog).declare(given, 1)
    assert new.as_recorded(new.to_json()).to_json() == new.to_json()


def test_rows_are_kept_from_the_first_declaration_on_or_never(tmp_path: Path) -> None:
    for before, now in ((False, True), (True, False)):
        changes = kept(declared(tmp_path, materialize=before), _X)
        with pytest.raises(DefinitionChangedError, match="materialize"):
            changes.declare(declared(tmp_path, materialize=now), 0)
    kept(declared(tmp_path, materialize=True), _X).declare(declared(tmp_path, materialize=True), 0)


def test_a_source_of_before_there_were_stored_rows_has_none(tmp_path: Path) -> None:
    source = declared(tmp_path).sources[0]
    assert "materialize" not in source.to_json()
    assert not SourceDefinition.of_json("s", source.to_json()).materialize
    kept(declared(tmp_path), _X).declare(declared(tmp_path, materialize=False), 0)
