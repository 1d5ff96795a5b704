"""The message about an actor that died."""

from __future__ import annotations

import ray
from ray.exceptions import ActorDiedError, RayTaskError

from actors.telemetry.text import cause_of_death, first_line

TRACEBACK = """ray::Coordinator.__init__() (pid=7, ip=127.0.0.1)
  File "coordinator.py", line 3, in __init__
AttributeError: 'Settings' has no attribute 'placement'
"""


def test_of_one_that_never_started_it_is_said_what_its_constructor_raised() -> None:
    raised = RayTaskError("Coordinator.__init__", TRACEBACK, AttributeError("placement"), pid=7, ip="127.0.0.1")
    raised._actor_id = ray.ActorID.nil().hex()
    assert cause_of_death(ActorDiedError(raised)) == (
        "its start failed: AttributeError: 'Settings' has no attribute 'placement'"
    )


def test_of_another_one_it_is_said_what_ray_knows() -> None:
    assert cause_of_death(ActorDiedError()) == ActorDiedError.BASE_ERROR_MSG
    assert first_line(ValueError("  one\ntwo")) == "one"
    assert first_line(ValueError()) == "no reason given"
