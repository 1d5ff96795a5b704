"""Death of a Ray actor: its reason in one line, and the death of its node."""

from __future__ import annotations

import ray
from ray._private import state
from ray.core.generated.common_pb2 import ActorDiedErrorContext

from actors.shells.runtime import ActorDiedError
from actors.telemetry.text import first_line

_BASE = ray.exceptions.ActorDiedError.BASE_ERROR_MSG


def death_of(error: ray.exceptions.RayActorError) -> ActorDiedError:
    """The death behind an error of Ray.

    When an actor's process dies, its node reports that within a second.  An actor that is `unavailable` instead has a
    node that does not answer: Ray counts it as dead only after five missed health checks.
    """
    node_lost = isinstance(error, ray.exceptions.ActorUnavailableError) or _died_with_node(error)
    return ActorDiedError(_cause(error), node_lost=node_lost)


def _died_with_node(error: ray.exceptions.RayActorError) -> bool:
    """True if Ray's table of actors has the death of the node as the reason; the error itself has it as text only."""
    if not error.actor_id or not ray.is_initialized():
        return False
    died = getattr(state.actors(error.actor_id).get("DeathCause"), "actor_died_error_context", None)
    return died is not None and died.reason == ActorDiedErrorContext.NODE_DIED


def _cause(error: ray.exceptions.RayActorError) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    if error.actor_init_failed:
        # Ray gives it as a traceback, whose last line is the error itself.
        return f"its start failed: {lines[-1].strip()}"
    # Above the reason Ray puts a sentence that is always the same, and indented facts.
    reasons = [line for line in lines if line != _BASE and not line.startswith("\t")]
    return reasons[0] if reasons else first_line(error)
