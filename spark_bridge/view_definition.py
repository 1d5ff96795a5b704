"""What a user writes to declare a view: a name with a query, or a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.errors import ViewError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ViewDefinition:
    """One view as it was declared; exactly one of `query` and `function` is given.

    Args:
        name: letters, digits and underscores, with a letter first; it becomes the name of the view's dataset.
        query: Spark SQL over the declared sources.
        function: takes one Spark DataFrame per source, named by its parameters, and returns a Spark DataFrame.
            It is called once, with empty frames.

    Raises:
        ViewError: the name or the function's parameters cannot be used.
    """

    name: str
    query: str | None = None
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not _IDENTIFIER.fullmatch(self.name):
            raise ViewError(
                f"view {self.name!r}: the name must be letters, digits and underscores, with a letter first; rename it"
            )
        if (self.query is None) == (self.function is None):
            raise ViewError(f"view {self.name!r}: give it either a query or a function")
        if self.query is not None and not self.query.strip():
            raise ViewError(f"view {self.name!r}: the query is empty; write a SELECT over a source")
        if self.function is not None:
            self._check_parameters(self.function)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The sources that a function's parameters name; none for a query, whose analysis tells."""
        return () if self.function is None else tuple(inspect.signature(self.function).parameters)

    def _check_parameters(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        if not parameters:
            raise ViewError(
                f"view {self.name!r}: its function has no parameter; name one per source, as in def view(flights)"
            )
        for parameter in parameters:
            plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if not plain or parameter.default is not parameter.empty:
                raise ViewError(
                    f"view {self.name!r}: parameter {str(parameter)!r} is not plain; "
                    "each parameter is the name of a source, without default and without *"
                )
