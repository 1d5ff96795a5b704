"""Limits of the endpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServingLimits:
    """Limits of the endpoint.

    Args:
        timeout_s: seconds that a statement computes at most.
        connections: connections at one time, before and after their log-in.
        max_rows: rows of one answer; None for no limit.
        max_answer_bytes: bytes of one answer; None for no limit.
        log_in_s: seconds from the acceptance of a connection to the end of its log-in.
        idle_s: seconds without a statement after which a session ends; None for no limit.
        max_message_bytes: bytes of messages that all clients have sent, and that are not answered yet.
    """

    timeout_s: float = 300.0
    connections: int = 100
    max_rows: int | None = None
    max_answer_bytes: int | None = None
    log_in_s: float = 10.0
    idle_s: float | None = 86_400.0
    max_message_bytes: int = 256 << 20
