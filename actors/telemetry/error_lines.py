"""What an error says, in one line."""

from __future__ import annotations


def first_line(error: Exception) -> str:
    """The first line of an error's text; what follows are addresses and traces."""
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def cause_of_death(error: Exception) -> str:
    """Why an actor is dead, by Ray's `RayActorError`: what its constructor raised, or what Ray says."""
    if not getattr(error, "actor_init_failed", False):
        return first_line(error)
    # Ray gives it as a traceback, whose last line is the error itself.
    return f"its start failed: {str(error).strip().splitlines()[-1].strip()}"
