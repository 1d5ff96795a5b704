"""Faults of the confinement of SQL: the parser, the frames of workers, and limits."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PARSER = "slackwater/confinement/query_parser.py"
_FRONT = "tests/slackwater/serving/test_front.py"
_WAYS_OUT = "tests/slackwater/serving/test_engine.py::test_no_statement_reads_or_writes_beyond_the_relations"
_LIMITS = "tests/slackwater/serving/test_workers.py::test_texts_answers_cursors_and_parameters_have_limits"

SERVING_MUTANTS = (
    Mutant(
        "functions that take addresses or texts are served",
        _PARSER,
        (("for name in sorted((names & _REFUSED_FUNCTIONS) | (", "for name in sorted(("),),
        shown_by=_WAYS_OUT,
    ),
    Mutant(
        "every function may come after FROM",
        _PARSER,
        ((" | (scans - self._table_functions)):", "):"),),
        shown_by=_WAYS_OUT,
    ),
    Mutant(
        "a worker gets the password of the endpoint",
        "slackwater/confinement/worker_process.py",
        (('_PREFIXES = ("LC_",)', '_PREFIXES = ("LC_", "SLACKWATER_")'),),
        shown_by="tests/slackwater/serving/test_workers.py::test_a_worker_gets_only_the_variables_of_its_store",
    ),
    Mutant(
        "a frame of a worker that answers no request is ignored",
        "slackwater/serving/front/worker_pool.py",
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
        "slackwater/serving/front/worker_pool.py",
        (("if size > frames.LARGEST_TO_FRONT:", "if size > 2**40:"),),
        shown_by=_FRONT,
    ),
    Mutant(
        "a statement has any length",
        "slackwater/serving/front/conversation.py",
        (("if size > _LARGEST_OF.get(kind, _LARGEST):", "if size > _LARGEST:"),),
        shown_by=_LIMITS,
    ),
    Mutant(
        "an answer has any number of bytes",
        "slackwater/serving/portal.py",
        (("            self._count_bytes(len(messages))\n", ""),),
        shown_by=_LIMITS,
    ),
    Mutant(
        "sessions share the engine of the worker",
        "slackwater/serving/engine.py",
        (("            ready, self._next = self._next, self._made()\n", "            ready = self._next\n"),),
        shown_by="tests/slackwater/serving/test_workers.py::test_sessions_have_engines_of_their_own",
    ),
    Mutant(
        "verify runs any function that the text of a view names",
        "slackwater/verification/duckdb_tables.py",
        (('        self._require_query(query, "the view is not one SELECT that reads")\n', ""),),
        shown_by="tests/slackwater/verification/test_verify.py::test_a_query_of_the_catalog_reaches_no_file",
    ),
)
