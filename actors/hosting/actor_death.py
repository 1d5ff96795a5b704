"""Death of a Ray actor: its reason in one line, and the death of its node."""

from __future__ import annotations

import ray

from actors.shells.runtime import ActorDiedError
from actors.telemetry.text import first_line

_BASE = ray.exceptions.ActorDiedError.BASE_ERROR_MSG
# Ray's table of actors has this reason as a value, which no public function returns without the dashboard.
_NODE_DIED = "The actor died because its node has died."


def death_of(error: ray.exceptions.RayActorError) -> ActorDiedError:
    """The death behind an error of Ray.

    When an actor's process dies, its node reports that within a second.  An actor that is `unavailable` instead has a
    node that does not answer: Ray counts it as dead only after five missed health checks.
    """
    cause = _cause(error)
    node_lost = isinstance(error, ray.exceptions.ActorUnavailableError) or cause.startswith(_NODE_DIED)
    return ActorDiedError(cause, node_lost=node_lost)


def _cause(error: ray.exceptions.RayActorError) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    if error.actor_init_failed:
        # Ray gives it as a traceback, whose last line is the error itself.
        return f"its start failed: {lines[-1].strip()}"
    # Above the reason Ray puts a sentence that is always the same, and indented facts.
    reasons = [line for line in lines if line != _BASE and not line.startswith("\t")]
    return reasons[0] if reasons else first_line(error)
