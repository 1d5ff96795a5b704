"""Faults of the SQL endpoint: its connections, log-ins and TLS."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TESTS = "tests/slackwater/serving/test_connections.py"

ENDPOINT_MUTANTS = (
    Mutant(
        "the limit counts connections only after their log-in",
        "slackwater/serving/log_in/connection_slots.py",
        (
            (
                "return len(self._pending) + len(self._sessions) < self._limit",
                "return len(self._sessions) < self._limit",
            ),
        ),
        shown_by=_TESTS,
    ),
    Mutant(
        "a new connection does not evict a silent one",
        "slackwater/serving/log_in/connection_slots.py",
        (("        elif self._pending:\n", "        elif False:\n"),),
        shown_by=f"{_TESTS}::test_silent_connections_lock_nobody_out",
    ),
    Mutant(
        "the youngest connection is evicted",
        "slackwater/serving/log_in/connection_slots.py",
        (("next(slot for slot in pool if", "next(slot for slot in list(pool)[::-1] if"),),
        shown_by=f"{_TESTS}::test_the_network_with_most_pending_connections_gives_up_its_oldest",
    ),
    Mutant(
        "a silent connection stays",
        "slackwater/serving/sql_server.py",
        (("asyncio.timeout(self._limits.log_in_s)", "asyncio.timeout(300)"),),
        shown_by=f"{_TESTS}::test_a_client_that_does_not_log_in_is_disconnected[nothing]",
    ),
    Mutant(
        "bytes before the handshake are left to TLS",
        "slackwater/serving/log_in/client_connection.py",
        (("        if self._has_bytes():\n", "        if False:\n"),),
        shown_by=f"{_TESTS}::test_bytes_between_a_request_for_tls_and_its_handshake_close_the_connection",
    ),
    Mutant(
        "a wrong password is answered at once",
        "slackwater/serving/sql_server.py",
        (("await asyncio.sleep(_REFUSAL_S)", "await asyncio.sleep(0)"),),
        shown_by=f"{_TESTS}::test_a_wrong_password_is_logged_with_its_address_and_answered_late",
    ),
    Mutant(
        "guesses by many connections do not wait for each other",
        "slackwater/serving/log_in/log_in_pace.py",
        (("        self._delay(network, free_at, now_s)\n        return", "        return"),),
        shown_by=f"{_TESTS}::test_after_a_wrong_password_its_network_waits_for_its_turn",
    ),
)
