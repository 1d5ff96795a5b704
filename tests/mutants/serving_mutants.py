"""Faults of the confinement of SQL: the parser, the frames of workers, and limits."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PARSER = "slackwater/confinement/query_parser.py"
_FRONT = "tests/slackwater/plugins/serve/test_front.py"
_WAYS_OUT = "tests/slackwater/plugins/serve/test_engine.py::test_no_statement_reads_or_writes_beyond_the_relations"
_BUDGET = "tests/slackwater/plugins/serve/test_message_budget.py"
_LIMITS = "tests/slackwater/plugins/serve/test_workers.py::test_texts_answers_cursors_and_parameters_have_limits"

SERVING_MUTANTS = (
    Mutant(
        "functions that take addresses or texts are served",
        _PARSER,
        (("if name in _REFUSED_FUNCTIONS or ", "if "),),
        shown_by=_WAYS_OUT,
    ),
    Mutant(
        "every function may come after FROM",
        _PARSER,
        ((" | (scans - self._table_functions)):", "):"),),
        shown_by=_WAYS_OUT,
    ),
    Mutant(
        "a worker of the endpoint writes files of any size",
        "slackwater/confinement/program.py",
        (("bool(int(ends_with_thread)), bool(int(limits_files))", "bool(int(ends_with_thread)), False"),),
        shown_by="tests/slackwater/plugins/serve/test_workers.py::test_a_worker_is_confined_by_the_system",
    ),
    Mutant(
        "a worker gets the password of the endpoint",
        "slackwater/confinement/worker_process.py",
        (('_PREFIXES = ("LC_",)', '_PREFIXES = ("LC_", "SLACKWATER_")'),),
        shown_by="tests/slackwater/plugins/serve/test_workers.py::test_a_worker_gets_only_the_variables_of_its_store",
    ),
    Mutant(
        "a frame of a worker that answers no request is ignored",
        "slackwater/plugins/serve/front/worker_pool.py",
        (
            (
                "if session is None or not session.receive(frame):",
                "if session is not None and not session.receive(frame):",
            ),
        ),
        shown_by=_FRONT,
    ),
    Mutant(
        "a frame of a worker has any size",
        "slackwater/plugins/serve/front/worker_pool.py",
        (("if size > frames.LARGEST_TO_FRONT:", "if size > 2**40:"),),
        shown_by=_FRONT,
    ),
    Mutant(
        "a statement has any length",
        "slackwater/plugins/serve/front/conversation.py",
        (("if size > _LARGEST_OF.get(kind, _LARGEST):", "if size > _LARGEST:"),),
        shown_by=_LIMITS,
    ),
    Mutant(
        "an answer has any number of bytes",
        "slackwater/plugins/serve/portal.py",
        (("            self._count_bytes(len(messages))\n", ""),),
        shown_by=_LIMITS,
    ),
    Mutant(
        "sessions share the engine of the worker",
        "slackwater/plugins/serve/engine.py",
        (("            ready, self._next = self._next, self._made()\n", "            ready = self._next\n"),),
        shown_by="tests/slackwater/plugins/serve/test_workers.py::test_sessions_have_engines_of_their_own",
    ),
    Mutant(
        "verify runs any function that the text of a view names",
        "slackwater/verification/duckdb_tables.py",
        (('        self._require_query(query, "the view is not one SELECT that reads")\n', ""),),
        shown_by="tests/slackwater/verification/test_verify.py::test_a_query_of_the_catalog_reaches_no_file",
    ),
    Mutant(
        "messages of clients take any memory of the front",
        "slackwater/plugins/serve/front/message_budget.py",
        (("        if self.taken + nbytes > self._largest:", "        if nbytes > self._largest:"),),
        shown_by=_BUDGET,
    ),
    Mutant(
        "an answered message keeps its share of the memory",
        "slackwater/plugins/serve/front/conversation.py",
        (("                    return\n                share.release()\n", "                    return\n"),),
        shown_by=_BUDGET,
    ),
    Mutant(
        "a worker keeps the pages of libraries that only its start needs",
        "slackwater/plugins/serve/worker.py",
        (("        return_memory()\n        unmap_clean_files()\n", ""),),
        shown_by="tests/slackwater/plugins/serve/test_workers.py::test_an_idle_worker_takes_little_memory",
    ),
    Mutant(
        "pages that the process has changed are unmapped",
        "state/allocation.py",
        (("(?={_NUMBERS}Anonymous: +0 kB\\n)", ""), (" r-[x-]p ", " r[w-][x-]p ")),
        shown_by="tests/state/test_allocation.py",
    ),
    Mutant(
        "no worker waits to replace one that ends",
        "slackwater/plugins/serve/front/worker_pool.py",
        (("range(self._size + self._spare - 1)", "range(self._size - 1)"),),
        shown_by="tests/slackwater/plugins/serve/test_workers.py"
        "::test_a_worker_that_dies_is_replaced_by_the_spare_one_and_its_sessions_end",
    ),
    Mutant(
        "Spark computes a view that takes too long in DuckDB",
        "slackwater/verification/verifier.py",
        (("                if isinstance(error, TimeLimitError):\n                    break\n", ""),),
        shown_by="tests/slackwater/verification/test_stored_sql.py::test_text_that_computes_for_too_long_is_ended",
    ),
    Mutant(
        "a text in a value is planned",
        _PARSER,
        (('"json_serialize_plan", ', ""),),
        shown_by=_WAYS_OUT,
    ),
    Mutant(
        "parts of DuckDB's own plans are served",
        _PARSER,
        ((" or name.startswith(_INTERNAL)}", "}"),),
        shown_by=_WAYS_OUT,
    ),
    Mutant(
        "compressed rows of a worker are read",
        "slackwater/confinement/received_rows.py",
        (("if metadata.place(header, _COMPRESSION):", "if False:"),),
        shown_by="tests/slackwater/confinement/test_received_rows.py",
    ),
    Mutant(
        "any number of rows of a worker is read",
        "slackwater/confinement/received_rows.py",
        (("if value_count > _BITS * (buffer.size + _SPARE_BYTES):", "if value_count > 2**62:"),),
        shown_by="tests/slackwater/confinement/test_received_rows.py",
    ),
    Mutant(
        "a session has any number of settings",
        "slackwater/plugins/serve/session_settings.py",
        (("and len(self._values) >= _MOST:", "and len(self._values) >= 10**9:"),),
        shown_by=_LIMITS,
    ),
)
