"""Ways out of the SQL of a client: files, network, settings, writes, other processes, sleep."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.slackwater.plugins.serve.served_sql import ServedSql

WAYS_OUT = [
    "COPY (SELECT 1) TO 'FILE'",
    "COPY totals FROM 'FILE'",
    "COPY (SELECT 1) TO PROGRAM 'touch FILE'",
    "ATTACH 'FILE' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH epoch_1",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "SET memory_limit = '100GB'; SELECT * FROM read_csv('FILE')",
    "SET enable_external_access = true; SELECT * FROM read_csv('FILE')",
    "RESET ALL; SELECT * FROM read_csv('FILE')",
    "EXPORT DATABASE 'FILE'",
    "IMPORT DATABASE 'FILE'",
    "USE memory",
    "CREATE TABLE t (n INT)",
    "CREATE MACRO f() AS 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE SECRET (TYPE s3)",
    "CREATE FUNCTION f() AS 1",
    "INSERT INTO totals VALUES ('x', 1, 1)",
    "UPDATE totals SET n = 0",
    "DELETE FROM totals",
    "MERGE INTO totals USING files ON true WHEN MATCHED THEN DELETE",
    "DROP VIEW totals",
    "ALTER VIEW totals RENAME TO other",
    "TRUNCATE totals",
    "VACUUM",
    "CHECKPOINT",
    "WITH gone AS (DELETE FROM totals RETURNING *) SELECT * FROM gone",
    "WITH more AS (INSERT INTO totals VALUES ('x', 1, 1) RETURNING *) SELECT * FROM more",
    "EXPLAIN ANALYZE DELETE FROM totals",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'FILE'",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "LISTEN channel",
    "DO $$ BEGIN END $$",
    "SELECT * FROM 'FILE'",
    'SELECT * FROM "FILE"',
    "FROM read_csv('FILE')",
    "FROM read_text('FILE')",
    "FROM read_blob('FILE')",
    "FROM read_json('FILE')",
    "FROM read_parquet('FILE')",
    "FROM parquet_metadata('FILE')",
    "FROM sniff_csv('FILE')",
    "FROM glob('/*')",
    "FROM read_duckdb('FILE')",
    "FROM read_csv('http://127.0.0.1:9/x')",
    "FROM read_parquet('s3://bucket/key')",
    "SELECT getenv('HOME')",
    "FROM duckdb_secrets()",
    "FROM duckdb_extensions()",
    "FROM query('SELECT 1')",
    "FROM query_table('totals')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "FROM arrow_scan(0::UBIGINT, 0::UBIGINT, 0::UBIGINT)",
    'FROM "arrow_scan"(0, 0, 0)',
    "FROM main.arrow_scan(0, 0, 0)",
    "FROM pandas_scan(0)",
    "FROM python_arrow_scan()",
    "FROM force_checkpoint()",
    "FROM enable_logging()",
    "SELECT write_log('x')",
    "SELECT pg_sleep(100)",
    "SELECT pg_catalog.pg_sleep(100)",
    "SELECT pg_read_file('FILE')",
    "SELECT pg_terminate_backend(1)",
    "SELECT lo_import('FILE')",
    "SELECT nextval('x')",
    "SELECT slackwater_file_history('epoch_1', 'FILE')",
    "SELECT * FROM pg_catalog.pg_class, read_text('FILE')",
    "SELECT relname FROM pg_class UNION ALL SELECT content FROM read_text('FILE')",
    "EXPLAIN (ANALYZE) CREATE OR REPLACE VIEW totals AS SELECT 1",
    "EXPLAIN (ANALYZE) SET search_path = 'main'",
    "EXPLAIN (ANALYZE) ATTACH 'FILE' AS other",
    "EXPLAIN (FORMAT json) SELECT * FROM read_text('FILE')",
    "EXPLAIN ANALYZE EXECUTE p",
    "EXPLAIN ANALYZE SELECT * FROM read_text('FILE')",
    "EXPLAIN EXPLAIN SELECT 1",
    "SELECT 1; EXPLAIN ANALYZE CREATE TABLE t (n INT)",
    "DECLARE c CURSOR WITH HOLD FOR COPY (SELECT 1) TO 'FILE'",
    "DECLARE c CURSOR WITH HOLD FOR DECLARE d CURSOR WITH HOLD FOR SELECT 1",
    "FROM query --\r('SELECT 42')",
    "SELECT sleep_ms --\r(15000)",
    "FROM arrow_scan --\r(4096, 4096, 4096)",
    "SELECT sleep_ms\ufeff(9000)",
    "FROM query\u00a0('SELECT 1')",
    "SELECT /* /* */ SELECT 1 */ sleep_ms(9000)",
    "FROM (DESCRIBE SELECT sleep_ms(9000))",
    "SELECT list_transform([1], x -> sleep_ms(x))",
    "SELECT CASE WHEN true THEN (SELECT max(content) FROM read_text('FILE')) END",
    "WITH a AS MATERIALIZED (FROM read_text('FILE')) FROM a",
    "FROM totals SEMI JOIN read_text('FILE') ON true",
    "FROM totals, LATERAL (FROM read_text('FILE'))",
    "FROM totals WHERE shop IN (SELECT content FROM read_text('FILE'))",
    "SELECT * FROM totals ORDER BY (SELECT max(content) FROM read_text('FILE'))",
    "SELECT * FROM totals QUALIFY row_number() OVER (ORDER BY sleep_ms(9000)) = 1",
    "SELECT (FROM query('SELECT 1'))",
    "FROM seq_scan('totals')",
    "FROM which_secret('x', 'y')",
    "FROM duckdb_logs()",
    "FROM checkpoint()",
    "FROM sqlite_scan('FILE', 't')",
    "FROM register_external_resource('FILE', 'x')",
    "FROM truncate_duckdb_logs()",
    "PIVOT totals ON shop USING sum(n)",
    "SET search_path = 'main'; FROM read_text('FILE')",
    "SELECT $$; $$; FROM read_text('FILE')",
    "SELECT 1; DROP SCHEMA public CASCADE",
    "SELECT 1 INTO t",
    "SELECT json_serialize_plan('SELECT * FROM query(''SELECT 1'')')",
    "SELECT JSON_Serialize_Plan ('SELECT levenshtein(repeat(''a'', 300000), repeat(''b'', 300000))', optimize := true)",
    "SELECT __internal_decompress_string(200::UTINYINT)",
    'SELECT "__INTERNAL_barrier"(1)',
    "SELECT slackwater_file_history(NULL, NULL)",
    "UPDATE EXTENSIONS",
    "EXPLAIN (ANALYZE) UPDATE EXTENSIONS",
    "EXPLAIN (ANALYZE) EXPLAIN SELECT 1",
    "EXPLAIN (ANALYZE)\r--\rCREATE TABLE t (n INT)",
    "EXPLAIN/**/(ANALYZE)COPY (SELECT 1) TO 'FILE'",
    "FROM (SUMMARIZE FROM read_text('FILE'))",
    "PIVOT (FROM read_text('FILE')) ON filename IN ('x') USING count(*)",
    'FROM memory.main."FILE"',
    "SELECT (5000).sleep_ms()",
    'SELECT U&"sleep_ms"(5000)',
    "FROM histogram('FILE', 'x')",
    "SELECT * FROM totals FOR UPDATE",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outside") / "file.csv"
    path.write_text("secret\n")
    return path


def test_no_statement_reads_or_writes_beyond_the_relations(values: ServedSql, file: Path) -> None:
    with values.connect() as client:
        before = client.execute("SELECT * FROM totals ORDER BY n").fetchall()
        for way in WAYS_OUT:
            with pytest.raises(psycopg.Error) as refused:
                client.execute(way.replace("FILE", str(file)).encode())
            assert "\n" not in str(refused.value).strip() and "unexpected" not in str(refused.value), way
            assert refused.value.sqlstate != "57014", way  # refused at once, not after a limit
        assert client.execute("SELECT * FROM totals ORDER BY n").fetchall() == before
        assert client.execute("SELECT current_setting('enable_external_access') FROM totals").fetchone() == (False,)
    assert file.read_text() == "secret\n"
    assert [each.name for each in file.parent.iterdir()] == ["file.csv"]


def test_the_same_is_refused_as_a_cursor_and_as_a_prepared_statement(values: ServedSql, file: Path) -> None:
    with values.connect(autocommit=False, prepare_threshold=0) as client:
        for way in ("SELECT * FROM read_text('FILE')", "SELECT pg_sleep(100)", "FROM query('SELECT 1')"):
            for query in (f"DECLARE c CURSOR FOR {way}", f"EXPLAIN ANALYZE {way}", f"SELECT * FROM ({way})"):
                with pytest.raises(psycopg.Error):
                    client.execute(query.replace("FILE", str(file)).encode())
                client.rollback()
            with pytest.raises(psycopg.Error):
                client.execute((way.replace("FILE", str(file)) + " WHERE 1 = %s").encode(), [1])
            client.rollback()


def test_words_in_texts_and_names_are_not_taken_for_statements(values: ServedSql) -> None:
    query = """SELECT 'DELETE; pg_sleep(1)' AS "insert", n AS "update" FROM totals ORDER BY n LIMIT 1 -- ; DROP"""
    assert values.rows(query) == [("DELETE; pg_sleep(1)", 10)]


def test_a_deeply_nested_query_is_answered(values: ServedSql) -> None:
    assert values.rows("SELECT " + "- " * 900 + "1") == [(1,)]


def test_an_error_in_the_values_of_a_statement_is_no_internal_error(values: ServedSql) -> None:
    with pytest.raises(psycopg.Error) as failed:
        values.rows("SELECT error('x')")
    assert failed.value.sqlstate == "22023"
