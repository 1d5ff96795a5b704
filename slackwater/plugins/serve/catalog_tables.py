"""Tables of PostgreSQL's catalog over some relations, as Arrow, and the functions that its readers call.

The columns: https://www.postgresql.org/docs/current/catalogs.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slackwater.plugins.serve.session_settings import SERVER_VERSION
from slackwater.plugins.serve.value_types import ARRAYS, SCALARS, modifier_of, type_of

DATABASE = "slackwater"
CATALOG_SCHEMA = "tools"
_OWNER = 10
_CATALOG, _PUBLIC = 11, 2200
_SCHEMAS = {"pg_catalog": _CATALOG, "public": _PUBLIC, "information_schema": 13_000}
_FIRST_RELATION = 16_384
_O, _T, _B, _I = pa.int64(), pa.string(), pa.bool_(), pa.int32()
_L, _LO = pa.list_(pa.string()), pa.list_(pa.int64())

TYPES: Mapping[str, str] = {
    "regclass": "BIGINT",
    "regnamespace": "BIGINT",
    "regtype": "VARCHAR",
    "regproc": "VARCHAR",
    "oid": "BIGINT",
    "xid": "BIGINT",
    "name": "VARCHAR",
    "cstring": "VARCHAR",
    "int2vector": "BIGINT[]",
    "oidvector": "BIGINT[]",
}
"""Types that DuckDB does not have → its own."""

_SETTINGS = {
    "server_version": SERVER_VERSION,
    "server_version_num": "160000",
    "search_path": "public",
    "timezone": "UTC",
    "max_index_keys": "32",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
}

MACROS: Sequence[str] = (
    f"version() AS 'PostgreSQL {SERVER_VERSION} (slackwater, over DuckDB)'",
    f"current_database() AS '{DATABASE}'",
    "current_schema() AS 'public'",
    "current_schemas(implicit) AS CASE WHEN implicit THEN ['pg_catalog', 'public'] ELSE ['public'] END",
    "current_user() AS 'slackwater'",
    "session_user() AS 'slackwater'",
    "pg_get_userbyid(number) AS 'slackwater'",
    # An expression without a query: table functions take no other argument.
    "current_setting(wanted, missing_ok := false) AS CASE lower(wanted) "
    + " ".join(f"WHEN '{name}' THEN '{value}'" for name, value in _SETTINGS.items())
    + " END",
    "set_config(wanted, given, is_local) AS given",
    # The aliases are found in no argument: an argument would take the inner table for its own.
    "format_type(number, modifier) AS coalesce(CASE WHEN number = 1700 AND modifier > 4 THEN "
    "'numeric(' || ((modifier - 4) >> 16) || ',' || ((modifier - 4) & 65535) || ')' END, "
    "(SELECT max(__type.shown) FROM pg_type __type WHERE __type.oid = number))",
    "to_regclass(wanted) AS (SELECT max(__class.oid) FROM pg_class __class WHERE "
    "__class.relname = replace(regexp_replace(wanted, '^\"?public\"?[.]', ''), '\"', ''))",
    "to_regtype(wanted) AS (SELECT max(__type.oid) FROM pg_type __type WHERE "
    "__type.typname = wanted OR __type.shown = wanted)",
    "array_upper(list, dimension) AS nullif(len(list), 0)",
    "array_lower(list, dimension) AS CASE WHEN len(list) > 0 THEN 1 END",
    "pg_table_is_visible(number) AS true",
    "pg_type_is_visible(number) AS true",
    "pg_function_is_visible(number) AS true",
    "pg_encoding_to_char(number) AS 'UTF8'",
    "pg_get_expr(tree, relation, pretty := false) AS CAST(NULL AS VARCHAR)",
    "pg_get_constraintdef(number, pretty := false) AS CAST(NULL AS VARCHAR)",
    "pg_get_indexdef(number, col := 0, pretty := false) AS CAST(NULL AS VARCHAR)",
    "pg_get_viewdef(number, pretty := false) AS CAST(NULL AS VARCHAR)",
    "pg_get_partkeydef(number) AS CAST(NULL AS VARCHAR)",
    "pg_get_serial_sequence(relation, col) AS CAST(NULL AS VARCHAR)",
    "pg_relation_is_publishable(number) AS false",
    "pg_is_in_recovery() AS false",
    "pg_backend_pid() AS 0",
    "pg_my_temp_schema() AS 0",
    "pg_is_other_temp_schema(number) AS false",
    "pg_relation_size(number, fork := 'main') AS CAST(0 AS BIGINT)",
    "pg_total_relation_size(number) AS CAST(0 AS BIGINT)",
    "pg_table_size(number) AS CAST(0 AS BIGINT)",
    "obj_description(number, catalog := '') AS CAST(NULL AS VARCHAR)",
    "col_description(number, col) AS CAST(NULL AS VARCHAR)",
    "shobj_description(number, catalog) AS CAST(NULL AS VARCHAR)",
    # Grafana reads the search path by it, with the alias `s`.
    "string_to_array(list, mark) AS TABLE SELECT string_split(list, mark) AS s",
    "quote_ident(name) AS CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_]*') THEN name ELSE "
    "'\"' || replace(name, '\"', '\"\"') || '\"' END",
    "pg_get_function_result(number) AS CAST(NULL AS VARCHAR)",
    "pg_get_function_arguments(number) AS CAST(NULL AS VARCHAR)",
    "pg_get_statisticsobjdef_columns(number) AS CAST(NULL AS VARCHAR)",
    "pg_tablespace_location(number) AS CAST(NULL AS VARCHAR)",
    "pg_database_size(number) AS CAST(0 AS BIGINT)",
    "has_database_privilege(a, b, c := '') AS true",
    "has_schema_privilege(a, b, c := '') AS true",
    "has_table_privilege(a, b, c := '') AS true",
    "has_any_column_privilege(a, b, c := '') AS true",
    "has_column_privilege(a, b, c, d := '') AS true",
    "_pg_expandarray(list) AS CAST(NULL AS STRUCT(x BIGINT, n BIGINT))",
)


def _table(columns: Mapping[str, pa.DataType], rows: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], pa.schema(list(columns.items())))


def catalog_tables(schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """Schema and name of a table → its rows.

    Args:
        schemas: name of a relation → its columns.
    """
    relations = {name: (_FIRST_RELATION + at, schema) for at, (name, schema) in enumerate(sorted(schemas.items()))}
    return {
        **{f"{CATALOG_SCHEMA}.{name}": table for name, table in _own(relations).items()},
        **{f"{CATALOG_SCHEMA}.{name}": _table(columns) for name, columns in _EMPTY.items()},
        **{f"tool_information.{name}": table for name, table in _information(relations).items()},
    }


def _own(relations: Mapping[str, tuple[int, pa.Schema]]) -> dict[str, pa.Table]:
    return {
        "pg_namespace": _table(
            {"oid": _O, "nspname": _T, "nspowner": _O, "nspacl": _L},
            [
                {"oid": number, "nspname": name, "nspowner": _OWNER}
                for name, number in _SCHEMAS.items()
            ],
        ),
        "pg_class": _table(_CLASS, [_class_row(name, *relation) for name, relation in relations.items()]),
        "pg_attribute": _table(
            _ATTRIBUTE,
            [
                _attribute_row(number, at, field)
                for number, schema in relations.values()
                for at, field in enumerate(schema, 1)
            ],
        ),
        "pg_type": _table(_TYPE, [_type_row(kind) for kind in (*SCALARS, *ARRAYS)]),
        "pg_database": _table(
            {
                "oid": _O, "datname": _T, "datdba": _O, "encoding": _I, "datlocprovider": _T, "datistemplate": _B,
                "datallowconn": _B, "datconnlimit": _I, "dattablespace": _O, "datcollate": _T, "datctype": _T,
                "daticulocale": _T, "daticurules": _T, "datlocale": _T, "datcollversion": _T, "datacl": _L,
            },
            [
                {
                    "oid": 5, "datname": DATABASE, "datdba": _OWNER, "encoding": 6, "datlocprovider": "c",
                    "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663,
                    "datcollate": "C", "datctype": "C",
                }
            ],
        ),
        "pg_roles": _table(_ROLE, [_ROLE_ROW]),
        "pg_user": _table({"usename": _T, "usesysid": _O}, [{"usename": "slackwater", "usesysid": _OWNER}]),
        "pg_tables": _table(
            {"schemaname": _T, "tablename": _T, "tableowner": _T, "tablespace": _T, "hasindexes": _B},
            [{"schemaname": "public", "tablename": name, "tableowner": "slackwater"} for name in relations],
        ),
        "pg_settings": _table(
            {"name": _T, "setting": _T},
            [{"name": name, "setting": value} for name, value in _SETTINGS.items()],
        ),
        "pg_am": _table({"oid": _O, "amname": _T, "amtype": _T}, [{"oid": 2, "amname": "heap", "amtype": "t"}]),
    }  # fmt: skip


def _class_row(name: str, number: int, schema: pa.Schema) -> dict[str, Any]:
    return {
        "oid": number, "relname": name, "relnamespace": _PUBLIC, "reltype": 0, "reloftype": 0, "relowner": _OWNER,
        "relam": 2, "relfilenode": number, "reltablespace": 0, "relpages": 0, "reltuples": -1.0, "relallvisible": 0,
        "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": "p", "relkind": "r",
        "relnatts": len(schema), "relchecks": 0, "relhasrules": False, "relhastriggers": False,
        "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True,
        "relreplident": "d", "relispartition": False, "relrewrite": 0, "relhasoids": False,
    }  # fmt: skip


def _attribute_row(number: int, at: int, field: pa.Field) -> dict[str, Any]:
    kind = type_of(field.type)
    return {
        "attrelid": number, "attname": field.name, "atttypid": kind.oid, "attstattarget": -1, "attlen": kind.size,
        "attnum": at, "attndims": int(kind.category == "A"), "atttypmod": modifier_of(field.type), "attnotnull": False,
        "atthasdef": False, "atthasmissing": False, "attidentity": "", "attgenerated": "", "attisdropped": False,
        "attislocal": True, "attinhcount": 0, "attcollation": 100 if kind.category == "S" else 0, "attstorage": "p",
        "attcompression": "",
    }  # fmt: skip


def _type_row(kind: Any) -> dict[str, Any]:
    element = next((each.oid for each in SCALARS if each.array == kind.oid), 0) if kind.category == "A" else 0
    return {
        "oid": kind.oid, "typname": kind.name, "typnamespace": _CATALOG, "typowner": _OWNER, "typlen": kind.size,
        "typbyval": 0 < kind.size <= 8, "typtype": "b", "typcategory": kind.category, "typispreferred": False,
        "typisdefined": True, "typdelim": ",", "typrelid": 0, "typelem": element, "typarray": kind.array,
        "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0,
        "typcollation": 100 if kind.category == "S" else 0, "typinput": "array_in" if element else f"{kind.name}in",
        "typreceive": "array_recv" if element else f"{kind.name}recv", "shown": _shown_type(kind.name),
    }  # fmt: skip


_SHOWN = {
    "bool": "boolean", "int8": "bigint", "int4": "integer", "int2": "smallint", "float4": "real",
    "float8": "double precision", "varchar": "character varying", "bpchar": "character",
    "timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
}  # fmt: skip


def _shown_type(name: str) -> str:
    return f"{_shown_type(name[1:])}[]" if name.startswith("_") else _SHOWN.get(name, name)


def _information(relations: Mapping[str, tuple[int, pa.Schema]]) -> dict[str, pa.Table]:
    place = {"table_catalog": DATABASE, "table_schema": "public"}
    return {
        "tables": _table(
            dict.fromkeys((*place, "table_name", "table_type", "is_insertable_into"), _T),
            [
                {**place, "table_name": name, "table_type": "BASE TABLE", "is_insertable_into": "NO"}
                for name in relations
            ],
        ),
        "columns": _table(
            _COLUMNS,
            [
                {**place, "table_name": name, **_column_row(at, field)}
                for name, (_, schema) in relations.items()
                for at, field in enumerate(schema, 1)
            ],
        ),
        "schemata": _table(
            {"catalog_name": _T, "schema_name": _T, "schema_owner": _T},
            [{"catalog_name": DATABASE, "schema_name": name, "schema_owner": "slackwater"}
             for name in _SCHEMAS],
        ),
        **{name: _table(dict.fromkeys(columns.split(), _T)) for name, columns in _EMPTY_INFORMATION.items()},
    }  # fmt: skip


def _column_row(at: int, field: pa.Field) -> dict[str, Any]:
    kind = type_of(field.type)
    is_decimal = pa.types.is_decimal(field.type)
    return {
        "column_name": field.name, "ordinal_position": at, "is_nullable": "YES", "is_updatable": "NO",
        "data_type": "ARRAY" if kind.category == "A" else _shown_type(kind.name), "udt_catalog": DATABASE,
        "udt_schema": "pg_catalog", "udt_name": kind.name, "is_identity": "NO", "is_generated": "NEVER",
        "numeric_precision": field.type.precision if is_decimal else None,
        "numeric_scale": field.type.scale if is_decimal else None,
    }  # fmt: skip


_CLASS: Mapping[str, pa.DataType] = {
    "oid": _O, "relname": _T, "relnamespace": _O, "reltype": _O, "reloftype": _O, "relowner": _O, "relam": _O,
    "relfilenode": _O, "reltablespace": _O, "relpages": _I, "reltuples": pa.float32(), "relallvisible": _I,
    "reltoastrelid": _O, "relhasindex": _B, "relisshared": _B, "relpersistence": _T, "relkind": _T, "relnatts": _I,
    "relchecks": _I, "relhasrules": _B, "relhastriggers": _B, "relhassubclass": _B, "relrowsecurity": _B,
    "relforcerowsecurity": _B, "relispopulated": _B, "relreplident": _T, "relispartition": _B, "relrewrite": _O,
    "relhasoids": _B, "relacl": _L, "reloptions": _L, "relpartbound": _T,
}  # fmt: skip
_ATTRIBUTE: Mapping[str, pa.DataType] = {
    "attrelid": _O, "attname": _T, "atttypid": _O, "attstattarget": _I, "attlen": _I, "attnum": _I, "attndims": _I,
    "atttypmod": _I, "attnotnull": _B, "atthasdef": _B, "atthasmissing": _B, "attidentity": _T, "attgenerated": _T,
    "attisdropped": _B, "attislocal": _B, "attinhcount": _I, "attcollation": _O, "attstorage": _T,
    "attcompression": _T, "attacl": _L, "attoptions": _L, "attfdwoptions": _L,
}  # fmt: skip
_TYPE: Mapping[str, pa.DataType] = {
    "oid": _O, "typname": _T, "typnamespace": _O, "typowner": _O, "typlen": _I, "typbyval": _B, "typtype": _T,
    "typcategory": _T, "typispreferred": _B, "typisdefined": _B, "typdelim": _T, "typrelid": _O, "typelem": _O,
    "typarray": _O, "typnotnull": _B, "typbasetype": _O, "typtypmod": _I, "typndims": _I, "typcollation": _O,
    "typinput": _T, "typreceive": _T, "typdefault": _T, "typacl": _L, "shown": _T,
}  # fmt: skip
_ROLE: Mapping[str, pa.DataType] = {
    "oid": _O, "rolname": _T, "rolsuper": _B, "rolinherit": _B, "rolcreaterole": _B, "rolcreatedb": _B,
    "rolcanlogin": _B, "rolreplication": _B, "rolbypassrls": _B, "rolconnlimit": _I, "rolvaliduntil": _T,
}  # fmt: skip
_ROLE_ROW = {
    "oid": _OWNER, "rolname": "slackwater", "rolsuper": False, "rolinherit": True, "rolcreaterole": False,
    "rolcreatedb": False, "rolcanlogin": True, "rolreplication": False, "rolbypassrls": False, "rolconnlimit": -1,
}  # fmt: skip
_COLUMNS: Mapping[str, pa.DataType] = {
    "table_catalog": _T, "table_schema": _T, "table_name": _T, "column_name": _T, "ordinal_position": _I,
    "column_default": _T, "is_nullable": _T, "data_type": _T, "character_maximum_length": _I, "numeric_precision": _I,
    "numeric_scale": _I, "datetime_precision": _I, "udt_catalog": _T, "udt_schema": _T, "udt_name": _T,
    "is_identity": _T, "identity_generation": _T, "is_generated": _T, "generation_expression": _T,
    "is_updatable": _T, "collation_name": _T, "domain_name": _T,
}  # fmt: skip
_EMPTY_INFORMATION: Mapping[str, str] = {
    "views": "table_catalog table_schema table_name view_definition",
    "table_constraints": "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
    "constraint_type is_deferrable initially_deferred",
    "key_column_usage": "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
    "column_name ordinal_position",
    "referential_constraints": "constraint_catalog constraint_schema constraint_name unique_constraint_schema "
    "unique_constraint_name update_rule delete_rule",
    "constraint_column_usage": "table_catalog table_schema table_name column_name constraint_schema constraint_name",
    "routines": "specific_schema specific_name routine_schema routine_name routine_type data_type",
    "role_table_grants": "grantor grantee table_catalog table_schema table_name privilege_type",
    "table_privileges": "grantor grantee table_catalog table_schema table_name privilege_type",
}
_EMPTY: Mapping[str, Mapping[str, pa.DataType]] = {
    "pg_index": {
        "indexrelid": _O, "indrelid": _O, "indnatts": _I, "indnkeyatts": _I, "indisunique": _B,
        "indnullsnotdistinct": _B, "indisprimary": _B, "indisexclusion": _B, "indimmediate": _B,
        "indisclustered": _B, "indisvalid": _B, "indcheckxmin": _B, "indisready": _B, "indislive": _B,
        "indisreplident": _B, "indkey": _LO, "indcollation": _LO, "indclass": _LO, "indoption": _LO,
        "indexprs": _T, "indpred": _T,
    },
    "pg_constraint": {
        "oid": _O, "conname": _T, "connamespace": _O, "contype": _T, "condeferrable": _B, "condeferred": _B,
        "convalidated": _B, "conrelid": _O, "contypid": _O, "conindid": _O, "conparentid": _O, "confrelid": _O,
        "confupdtype": _T, "confdeltype": _T, "confmatchtype": _T, "conislocal": _B, "coninhcount": _I,
        "connoinherit": _B, "conkey": _LO, "confkey": _LO, "conbin": _T,
    },
    "pg_attrdef": {"oid": _O, "adrelid": _O, "adnum": _I, "adbin": _T},
    "pg_description": {"objoid": _O, "classoid": _O, "objsubid": _I, "description": _T},
    "pg_shdescription": {"objoid": _O, "classoid": _O, "description": _T},
    "pg_inherits": {"inhrelid": _O, "inhparent": _O, "inhseqno": _I, "inhdetachpending": _B},
    "pg_proc": {
        "oid": _O, "proname": _T, "pronamespace": _O, "proowner": _O, "prokind": _T, "prorettype": _O,
        "proargtypes": _LO, "proretset": _B, "proisagg": _B, "pronargs": _I,
    },
    "pg_enum": {"oid": _O, "enumtypid": _O, "enumsortorder": pa.float32(), "enumlabel": _T},
    "pg_range": {"rngtypid": _O, "rngsubtype": _O, "rngmultitypid": _O},
    "pg_collation": {
        "oid": _O, "collname": _T, "collnamespace": _O, "collowner": _O, "collprovider": _T,
        "collisdeterministic": _B, "collcollate": _T, "collctype": _T,
    },
    "pg_policy": {
        "oid": _O, "polname": _T, "polrelid": _O, "polcmd": _T, "polpermissive": _B, "polroles": _LO, "polqual": _T,
        "polwithcheck": _T,
    },
    "pg_statistic_ext": {
        "oid": _O, "stxrelid": _O, "stxname": _T, "stxnamespace": _O, "stxowner": _O, "stxstattarget": _I,
        "stxkeys": _LO, "stxkind": _L, "stxexprs": _T,
    },
    "pg_publication": {"oid": _O, "pubname": _T, "puballtables": _B},
    "pg_publication_rel": {"oid": _O, "prpubid": _O, "prrelid": _O, "prqual": _T, "prattrs": _LO},
    "pg_publication_namespace": {"oid": _O, "pnpubid": _O, "pnnspid": _O},
    "pg_trigger": {"oid": _O, "tgrelid": _O, "tgname": _T, "tgisinternal": _B, "tgenabled": _T, "tgparentid": _O},
    "pg_rewrite": {"oid": _O, "rulename": _T, "ev_class": _O, "ev_type": _T, "ev_enabled": _T},
    "pg_foreign_table": {"ftrelid": _O, "ftserver": _O, "ftoptions": _L},
    "pg_foreign_server": {"oid": _O, "srvname": _T, "srvowner": _O},
    "pg_partitioned_table": {"partrelid": _O, "partstrat": _T, "partnatts": _I},
    "pg_sequence": {"seqrelid": _O, "seqtypid": _O, "seqstart": _O, "seqincrement": _O, "seqmin": _O, "seqmax": _O,
        "seqcache": _O, "seqcycle": _B},
    "pg_sequences": {"schemaname": _T, "sequencename": _T},
    "pg_depend": {
        "classid": _O, "objid": _O, "objsubid": _I, "refclassid": _O, "refobjid": _O, "refobjsubid": _I, "deptype": _T,
    },
    "pg_extension": {"oid": _O, "extname": _T, "extversion": _T, "extnamespace": _O},
    "pg_tablespace": {"oid": _O, "spcname": _T, "spcowner": _O},
    "pg_views": {"schemaname": _T, "viewname": _T, "viewowner": _T, "definition": _T},
    "pg_matviews": {"schemaname": _T, "matviewname": _T, "matviewowner": _T, "definition": _T, "ispopulated": _B},
    "pg_indexes": {"schemaname": _T, "tablename": _T, "indexname": _T, "tablespace": _T, "indexdef": _T},
    "pg_opclass": {"oid": _O, "opcname": _T, "opcmethod": _O, "opcdefault": _B},
    "pg_auth_members": {"roleid": _O, "member": _O, "grantor": _O, "admin_option": _B},
    "pg_stat_user_tables": {"relid": _O, "schemaname": _T, "relname": _T, "n_live_tup": _O},
    "pg_event_trigger": {"oid": _O, "evtname": _T},
    "pg_timezone_names": {"name": _T, "abbrev": _T},
}  # fmt: skip
