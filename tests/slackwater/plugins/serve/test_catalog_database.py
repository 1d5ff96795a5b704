"""What tools ask of the catalog: psql, SQLAlchemy, dashboards and drivers."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pandas as pd
import psycopg.types
import pytest
import sqlalchemy

from tests.slackwater.plugins.serve.served_sql import HOST, ServedSql
from tests.slackwater.plugins.serve.value_root import COLUMNS

RELATIONS = ["epochs", "every_type", "files", "handled_files", "quarantine", "sources", "totals"]


@pytest.fixture(scope="module")
def psql(values: ServedSql) -> Any:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not on this machine")

    def run(*commands: str) -> str:
        each = [part for command in commands for part in ("-c", command)]
        place = ["-h", HOST, "-p", str(values.port), "-U", "ann", "slackwater"]
        ended = subprocess.run([program, "-X", "-A", "-t", *place, *each], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0 and ended.stderr in ("", "Did not find any relations.\n"), ended
        return ended.stdout

    return run


def test_psql_lists_and_describes_the_relations(psql: Any) -> None:
    for command in (r"\d", r"\dt"):
        assert [line.split("|")[:2] for line in psql(command).splitlines()] == [["public", name] for name in RELATIONS]
    columns = [line.split("|")[:2] for line in psql(r"\d totals").splitlines()]
    assert columns == [["shop", "text"], ["number", "integer"], ["n", "bigint"]]
    assert "money|numeric(20,4)" in psql(r"\d+ every_type")
    assert psql(r"\l").startswith("slackwater|")
    assert "public|" in psql(r"\dn")
    for command in (r"\dv", r"\di", r"\df", r"\dt+", r"\du", r"\conninfo", r"\dT", r"\dx"):
        psql(command)


def test_psql_completes_names(psql: Any) -> None:
    """The query of psql 15 and 16 behind the tabulator."""
    query = (
        "SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', 'v', 'm', "
        "'f', 'p') AND (c.relname) LIKE 'tot%' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relnamespace <> (SELECT "
        "oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog') UNION ALL SELECT NULL::pg_catalog.text, "
        "n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'tot%' AND n.nspname NOT LIKE E'pg\\\\_%' "
        "LIMIT 1000"
    )
    assert psql(query) == "totals|\n"


def test_sqlalchemy_reflects_the_relations(values: ServedSql) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://ann@{HOST}:{values.port}/slackwater")
    try:
        inspector = sqlalchemy.inspect(engine)
        assert (inspector.get_table_names(), inspector.get_view_names()) == (RELATIONS, [])
        assert "public" in inspector.get_schema_names()
        assert (inspector.get_indexes("totals"), inspector.get_foreign_keys("totals")) == ([], [])
        tables = sqlalchemy.MetaData()
        tables.reflect(engine)
        assert list(tables.tables["every_type"].columns.keys()) == list(COLUMNS)
        totals = tables.tables["totals"]
        with engine.connect() as client:
            found = client.execute(sqlalchemy.select(totals.c.n).where(totals.c.shop == "o'hare", totals.c.number == 2))
            assert found.fetchall() == [(20,)]
    finally:
        engine.dispose()


def test_pandas_reads_views_and_answers(values: ServedSql) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://ann@{HOST}:{values.port}/slackwater")
    try:
        whole = pd.read_sql_table("totals", engine)
        assert len(whole) == values.rows("SELECT count(*) FROM totals")[0][0] and whole["n"].dtype == "int64"
        query = "SELECT shop, n FROM totals WHERE shop = %(shop)s AND number = 2"
        chosen = pd.read_sql_query(query, engine, params={"shop": "o'hare"})
        assert chosen.to_dict("records") == [{"shop": "o'hare", "n": 20}]
        with engine.connect().execution_options(stream_results=True) as client:
            parts = list(pd.read_sql_query("SELECT * FROM totals", client, chunksize=1))
        assert len(parts) == len(whole)
    finally:
        engine.dispose()


QUESTIONS = {
    # Grafana's data source
    "SELECT current_setting('server_version_num')::int/100 as version": [(1600,)],
    "SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE "
    "trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), "
    "array_upper(string_to_array(current_setting('search_path'),','),1)) as i, string_to_array(current_setting("
    "'search_path'),',') s) THEN "
    "quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS \"table\" FROM "
    "information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', "
    "'_timescaledb_cache') AND quote_ident(table_name) = 'totals' ORDER BY 1": [("totals",)],
    "SELECT quote_ident(column_name) AS \"column\", data_type AS \"type\" FROM information_schema.columns WHERE "
    "quote_ident(table_name) = 'totals' ORDER BY ordinal_position LIMIT 1": [("shop", "text")],
    # drivers
    "SELECT version()": None,
    "select current_schema(), current_database(), current_user": [("public", "slackwater", "slackwater")],
    "SELECT t.oid, typname FROM pg_type t WHERE typname = 'int8'": [(20, "int8")],
    "SELECT typarray, typelem FROM pg_catalog.pg_type WHERE oid = 25": [(1009, 0)],
    "SELECT 'totals'::regclass::oid > 0": [(True,)],
    "SELECT 'public.totals'::regclass IS NULL, to_regclass('nothing') IS NULL": [(False, True)],
    "SELECT format_type(1700, 1310728), format_type(23, -1), format_type(1016, -1)": [
        ("numeric(20,4)", "integer", "bigint[]")
    ],
    "SELECT format_type(t.oid, NULL) FROM pg_type t WHERE t.oid = 23": [("integer",)],
    "SELECT to_regclass(c.relname) = c.oid FROM pg_class c WHERE c.relname = 'totals'": [(True,)],
    # pgjdbc, getTables and getColumns: Metabase, DBeaver
    "SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME, CASE n.nspname ~ '^pg_' OR "
    "n.nspname = 'information_schema' WHEN true THEN 'SYSTEM TABLE' ELSE 'TABLE' END AS TABLE_TYPE, d.description "
    "AS REMARKS FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_description d ON "
    "(c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass) WHERE c.relnamespace = n.oid AND "
    "n.nspname LIKE 'public' AND c.relname LIKE 'totals' AND (false OR (c.relkind = 'r' AND n.nspname !~ '^pg_' "
    "AND n.nspname <> 'information_schema')) ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME": [
        (None, "public", "totals", "TABLE", None)
    ],
    "SELECT * FROM (SELECT current_database() AS current_database, "
    "n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS "
    "attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS "
    "attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as "
    "attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype "
    "FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid) JOIN "
    "pg_catalog.pg_attribute a ON (a.attrelid=c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN "
    "pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum) LEFT JOIN "
    "pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) LEFT JOIN "
    "pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class') LEFT JOIN pg_catalog.pg_namespace "
    "dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog') WHERE c.relkind in ('r','p','v','f','m') and "
    "a.attnum > 0 AND NOT a.attisdropped AND c.relname LIKE 'totals') c WHERE true ORDER BY "
    "nspname,c.relname,attnum LIMIT 1": None,
    "SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace WHERE nspname <> 'pg_toast' AND "
    "(nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1]) ORDER BY TABLE_SCHEM": [
        ("information_schema", None), ("pg_catalog", None), ("public", None),
    ],
}  # fmt: skip


def test_questions_of_dashboards_and_drivers_are_answered(values: ServedSql) -> None:
    with values.connect() as client:
        for question, found in QUESTIONS.items():
            rows = client.execute(question.encode()).fetchall()
            assert rows and (found is None or rows == found), (question, rows)


def test_a_type_is_found_by_its_name(values: ServedSql) -> None:
    with values.connect() as client:
        found = psycopg.types.TypeInfo.fetch(client, "timestamptz")
        assert found is not None and (found.oid, found.array_oid) == (1184, 1185)
        assert psycopg.types.TypeInfo.fetch(client, "hstore") is None


def test_a_question_about_rows_is_not_answered_by_the_catalog(values: ServedSql) -> None:
    assert values.rows("SELECT count(*), max(current_schema()) FROM totals") == [(3, "public")]
    assert values.rows("SELECT count(*) FROM totals t, information_schema.schemata s WHERE s.schema_name = 'public'")
