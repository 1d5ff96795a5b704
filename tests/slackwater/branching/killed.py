"""Deaths of this process at every step of some work: before and after each call that changes a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import lance
import obstore
import pytest


class Killed(BaseException):
    """The process dies: no handler of errors runs its course."""


def deaths(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> Iterator[int]:
    """Does the work again and again, each time with a death one step later; ends when it was done without a death.

    Yields:
        The number of the step at which the work died.
    """
    for step in range(1_000):
        with monkeypatch.context() as patched:
            _die_at(patched, step)
            try:
                work()
                return
            except Killed:
                pass
        yield step
    raise AssertionError("the work has no end")


def _die_at(patched: pytest.MonkeyPatch, step: int) -> None:
    """Patches the calls that change a store: each is two steps, before it and after it."""
    steps = iter(range(1_000_000))

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            if next(steps) >= step:
                raise Killed
            result = call(*arguments, **options)
            if next(steps) >= step:
                raise Killed
            return result

        return called

    patched.setattr(lance.LanceDataset, "shallow_clone", deadly(lance.LanceDataset.shallow_clone))
    patched.setattr(lance.LanceDataset, "commit", staticmethod(deadly(lance.LanceDataset.commit)))
    tags = import_module("lance.dataset").Tags
    patched.setattr(tags, "create", deadly(tags.create))
    patched.setattr(obstore, "delete", deadly(obstore.delete))
