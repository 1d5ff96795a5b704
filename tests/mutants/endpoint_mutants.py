"""Faults of what listens or answers: connections and log-ins of the endpoint, the fork server, receivers of alerts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TESTS = "tests/slackwater/plugins/serve/test_connections.py"
_FORKS = "tests/actors/fast_start/test_fork_server.py"
_ATTEMPTS = "tests/actors/hosting/test_start_attempts.py"
_CHOICE = "tests/actors/fast_start/test_choice.py"

ENDPOINT_MUTANTS = (
    Mutant(
        "the limit counts connections only after their log-in",
        "slackwater/plugins/serve/log_in/connection_slots.py",
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
        "slackwater/plugins/serve/log_in/connection_slots.py",
        (("        elif self._pending:\n", "        elif False:\n"),),
        shown_by=f"{_TESTS}::test_silent_connections_lock_nobody_out",
    ),
    Mutant(
        "the youngest connection is evicted",
        "slackwater/plugins/serve/log_in/connection_slots.py",
        (("next(slot for slot in pool if", "next(slot for slot in list(pool)[::-1] if"),),
        shown_by=f"{_TESTS}::test_the_network_with_most_pending_connections_gives_up_its_oldest",
    ),
    Mutant(
        "a silent connection stays",
        "slackwater/plugins/serve/sql_server.py",
        (("asyncio.timeout(self._limits.log_in_s)", "asyncio.timeout(300)"),),
        shown_by=f"{_TESTS}::test_a_client_that_does_not_log_in_is_disconnected[nothing]",
    ),
    Mutant(
        "bytes before the handshake are left to TLS",
        "slackwater/plugins/serve/log_in/client_connection.py",
        (("        if self._has_bytes():\n", "        if False:\n"),),
        shown_by=f"{_TESTS}::test_bytes_between_a_request_for_tls_and_its_handshake_close_the_connection",
    ),
    Mutant(
        "a wrong password is answered at once",
        "slackwater/plugins/serve/sql_server.py",
        (("await asyncio.sleep(_REFUSAL_S)", "await asyncio.sleep(0)"),),
        shown_by=f"{_TESTS}::test_a_wrong_password_is_logged_with_its_address_and_answered_late",
    ),
    Mutant(
        "guesses by many connections do not wait for each other",
        "slackwater/plugins/serve/log_in/log_in_pace.py",
        (("            async with queue.lock:\n", "            if True:\n"),),
        shown_by=f"{_TESTS}::test_after_a_wrong_password_its_network_waits_for_its_turn",
    ),
    Mutant(
        "guesses of the secret of a session are fast",
        "slackwater/plugins/serve/sql_server.py",
        (
            (
                "            self._pace.refused(connection.network)\n        _log.warning",
                "        _log.warning",
            ),
        ),
        shown_by=f"{_TESTS}::test_guesses_of_the_secret_of_a_session_are_slow_and_logged",
    ),
    Mutant(
        "a client that is gone waits for its verdict",
        "slackwater/plugins/serve/log_in/client_connection.py",
        (("asyncio.wait((task, byte), return_when=asyncio.FIRST_COMPLETED)", "asyncio.wait((task,))"),),
        shown_by=f"{_TESTS}::test_work_for_a_client_that_is_gone_is_cancelled",
    ),
    Mutant(
        "a worker sends its environment to any user",
        "actors/fast_start/forked_worker.py",
        (("            if not is_own_user(connection):\n", "            if False:\n"),),
        shown_by=f"{_FORKS}::test_worker_sends_nothing_to_a_server_of_another_user",
    ),
    Mutant(
        "the fork server forks for any user",
        "actors/fast_start/fork_server.py",
        (("            if not is_own_user(connection):\n", "            if False:\n"),),
        shown_by=f"{_FORKS}::test_server_answers_no_process_of_another_user",
    ),
    Mutant(
        "the fast start is used although the settings exclude it",
        "actors/fast_start/choice.py",
        (("return asked and not (", "return asked or not ("),),
        shown_by=f"{_CHOICE}::test_setting_counts_for_the_connection_of_this_process",
    ),
    Mutant(
        "an untested version of Ray starts fast",
        "actors/fast_start/choice.py",
        (("not number.startswith(", "number.startswith("),),
        shown_by=f"{_CHOICE}::test_newer_ray_starts_plainly_with_one_line_in_the_log",
    ),
    Mutant(
        "the repr of an alert shows the URL of its webhook",
        "slackwater/plugins/alerts/alert.py",
        (("masked_repr(self, to=self.to if self.to == LOG else masked_url(self.to))", "masked_repr(self)"),),
        shown_by="tests/security/test_secrets.py::test_the_repr_of_a_receiver_shows_its_host",
    ),
    Mutant(
        "the answer of a webhook is read",
        "slackwater/plugins/alerts/delivery.py",
        (("        return answer.status\n", "        await answer.read()\n        return answer.status\n"),),
        shown_by="tests/slackwater/plugins/alerts/test_delivery.py::test_an_endless_answer_is_not_read",
    ),
    Mutant(
        "the answer to lineage is read",
        "slackwater/plugins/lineage/emitter.py",
        (("transport.session.stream = True", "transport.session.stream = False"),),
        shown_by="tests/slackwater/plugins/alerts/test_delivery.py::test_an_endless_answer_to_lineage_is_not_read",
    ),
    Mutant(
        "a token that a group can read is private",
        "slackwater/plugins/doctor/ray_token.py",
        (("_GROUP, _OTHERS = 0o070, 0o007", "_GROUP, _OTHERS = 0o000, 0o007"),),
        shown_by="tests/slackwater/plugins/doctor/test_doctor.py::test_a_token_of_ray_that_others_can_read_is_a_warning",
    ),
    Mutant(
        "a number of a document may be infinite",
        "state/json_document.py",
        (("return number if math.isfinite(number) else _refuse(text)", "return number"),),
        shown_by="tests/state/test_json_document.py",
    ),
    Mutant(
        "a time of a document may lack its zone",
        "state/json_document.py",
        (("if moment.tzinfo is None or not", "if moment.tzinfo is not None and not"),),
        shown_by="tests/state/test_json_document.py",
    ),
    Mutant(
        "a key with a text that is not UTF-8 is not a protocol error",
        "state/tables/keys.py",
        (("except UnicodeDecodeError:", "except UnicodeEncodeError:"),),
        shown_by="tests/state/test_json_document.py",
    ),
    Mutant(
        "a start of Ray has one attempt",
        "actors/hosting/start_attempts.py",
        (("            if number == len(patience_s):\n", "            if number:\n"),),
        shown_by=f"{_ATTEMPTS}::test_start_that_failed_for_lack_of_time_is_tried_again_with_more_patience",
    ),
    Mutant(
        "a failed attempt leaves its servers",
        "actors/hosting/start_attempts.py",
        (("            each.kill()\n", "            pass\n"),),
        shown_by=f"{_ATTEMPTS}::test_failed_attempt_leaves_no_server_and_earlier_servers_stay",
    ),
    Mutant(
        "a failed attempt ends a Ray that was there before",
        "actors/hosting/start_attempts.py",
        (("started = _servers() - earlier", "started = _servers()"),),
        shown_by=f"{_ATTEMPTS}::test_failed_attempt_leaves_no_server_and_earlier_servers_stay",
    ),
    Mutant(
        "the raylet waits for its agent for metrics",
        "actors/fast_start/lean_node.py",
        (
            (
                "    parameters.metrics_agent_port, parameters.metrics_export_port = metrics, export\n",
                "    parameters.metrics_export_port = export\n",
            ),
        ),
        shown_by=f"{_ATTEMPTS}::test_ray_starts_without_waiting_for_its_agents_and_has_runtime_environments",
    ),
    Mutant(
        "the agent for runtime environments never starts",
        "actors/fast_start/late_agent.py",
        (("in select.select([listener, sys.stdin], [], [])[0]", "in select.select([sys.stdin], [], [])[0]"),),
        shown_by="tests/actors/fast_start/test_late_agent.py::test_agent_answers_the_connection_that_has_started_it",
    ),
    Mutant(
        "one late answer of a JVM is its end",
        "spark_bridge/engine/application/ray_application.py",
        (
            (
                "    except FutureTimeoutError:\n        return None\n",
                "    except FutureTimeoutError:\n        return -1\n",
            ),
        ),
        shown_by="tests/spark_bridge/engine/application/test_ray_application.py::test_late_answer_of_a_driver_is_not_its_end",
    ),
    Mutant(
        "another process can listen at the port of an agent that starts",
        "actors/fast_start/late_agent.py",
        (("        _replace_bind(listener)\n", "        listener.close()\n"),),
        shown_by="tests/actors/fast_start/test_late_agent.py::test_agent_answers_the_connection_that_has_started_it",
    ),
)
