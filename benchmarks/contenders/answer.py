"""Output of a contender.  It uses the standard library only: an environment without our packages imports it too."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

Groups = list[tuple[int, int, float]]
"""User, number of rows, sum of the amounts."""


@dataclass(frozen=True)
class Answer:
    """Of one contender.

    Args:
        start_s: from the start of its program to the moment it is ready for the files; imports included.
        seconds: of the work; of each file, where they come one at a time.
        groups: its result.
    """

    start_s: float
    seconds: tuple[float, ...]
    groups: Groups

    def print(self) -> None:
        """As the last line, for `answer_in`."""
        print(json.dumps(asdict(self)), flush=True)

    def check(self, other: Answer, name: str) -> None:
        """That both found the same; sums may differ in the last digits.

        Raises:
            AssertionError: they did not.
        """
        ours, theirs = sorted(self.groups), sorted(other.groups)
        assert [each[:2] for each in ours] == [each[:2] for each in theirs], f"{name} counts other rows"
        for our, their in zip(ours, theirs, strict=True):
            assert math.isclose(our[2], their[2], rel_tol=1e-9), f"{name} has {their} for {our}"


def answer_in(printed: str) -> Answer:
    """The answer in the last line."""
    stored = json.loads(printed.splitlines()[-1])
    groups = [(int(user), int(count), float(total)) for user, count, total in stored["groups"]]
    return Answer(stored["start_s"], tuple(stored["seconds"]), groups)
