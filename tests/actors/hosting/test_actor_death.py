"""Tests of the death of a Ray actor: its message, and the death of its node."""

from __future__ import annotations

import ray
from ray.core.generated.common_pb2 import ActorDiedErrorContext
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayTaskError

from actors.hosting.actor_death import death_of
from state.errors import NodeLostError, RunFailedError

TRACEBACK = """ray::Coordinator.__init__() (pid=7, ip=127.0.0.1)
  File "coordinator.py", line 3, in __init__
AttributeError: 'Settings' has no attribute 'placement'
"""


def test_of_one_that_never_started_it_is_said_what_its_constructor_raised() -> None:
    raised = RayTaskError("Coordinator.__init__", TRACEBACK, AttributeError("placement"), pid=7, ip="127.0.0.1")
    raised._actor_id = ray.ActorID.nil().hex()
    assert death_of(ActorDiedError(raised)).cause == (
        "its start failed: AttributeError: 'Settings' has no attribute 'placement'"
    )


def test_of_another_one_it_is_said_what_ray_knows() -> None:
    context = ActorDiedErrorContext(
        error_message="The actor died because its node has died.\nmore", actor_id=ray.ActorID.nil().binary(), pid=7
    )
    death = death_of(ActorDiedError(context))
    assert death.cause == "The actor died because its node has died." and death.node_lost
    assert death_of(ActorDiedError()).cause == ActorDiedError.BASE_ERROR_MSG


def test_one_whose_node_does_not_answer_is_lost_with_its_node() -> None:
    death = death_of(ActorUnavailableError("RpcError: Socket closed", None))
    assert death.node_lost and isinstance(death.ending("the actor fetch-0 died"), NodeLostError)


def test_one_whose_process_died_is_not() -> None:
    death = death_of(ActorDiedError())
    assert not death.node_lost and type(death.ending("the actor fetch-0 died")) is RunFailedError
