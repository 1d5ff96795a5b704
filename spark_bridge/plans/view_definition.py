"""The declaration of a view by the user: a name with a query, or a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from typing_extensions import Unpack

from actors.sources.event_time import Duration, duration_text, microseconds
from spark_bridge.plans.row_halves import Half, half_of_frame, half_of_query
from spark_bridge.plans.view_conditions import ViewCondition
from state.errors import SettingsError, ViewError
from state.tables.expectations import ON_VIOLATION, OnViolation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


Emit = Literal["on_close"]
"""The moment at which a view shows a group, if it is not the epoch of its first row."""

EMITTED = "emit on close"
"""A part of the identity of a view with `emit="on_close"`, and of each view that reads it."""

ON_CLOSE = f"-- {EMITTED}"
"""The last line of the recorded definition of such a view."""

Expire = Literal["by_watermark"]
"""The moment at which rows of joins leave the state of a view."""

EXPIRING = "expire by watermark"
"""A part of the identity of a view with `expire="by_watermark"` or a `ttl`, and of each view that reads it."""

BY_WATERMARK = f"-- {EXPIRING}"
"""The last line of the recorded definition of such a view."""

BY_TTL = "-- ttl "
"""The beginning of the line with its time to live in the recorded definition of a view with one."""

Policy = Literal["refuse", "allow"]
"""The answer to a case that needs the user's consent."""


class ViewOptions(TypedDict, total=False):
    """The options of a view, see `ViewDefinition`."""

    on_full: Policy
    refresh_interval_s: float
    replace: bool
    cascade: bool
    on_missing: Policy
    emit: Emit | None
    expire: Expire | None
    ttl: Duration | None
    expect: Mapping[str, str | ViewCondition]
    on_violation: OnViolation


@dataclass(frozen=True)
class ViewDefinition:
    """The declaration of one view, with either `query` or `function`.

    Args:
        name: letters, digits and underscores, with a letter first; a part of the path of the view's dataset.
        query: Spark SQL over the declared sources and the other views.
        function: takes one Spark DataFrame per source or view, named by its parameters, and returns a Spark DataFrame.
            It is called once, with empty frames.
        on_full: `"allow"` lets the view be recomputed as a whole, `"refuse"` requires an incremental view.
        refresh_interval_s: minimum seconds from the start of one recomputation of a full view to the next.  Above 0 it
            also lets a view be recomputed that would read all of its rows in some epochs.
        replace: whether it replaces a stored view of this name with another definition.
        cascade: whether, if it replaces a stored view, the views that read it are rebuilt with it.
        on_missing: for a backfill, when an ingested file is deleted: `"refuse"` keeps the view hidden, `"allow"` shows
            it without those rows, and the catalog lists the files.
        emit: `"on_close"` shows a group of a window or session of event time once, when the watermark has passed its
            end, and never changes it.
        expire: `"by_watermark"` lets rows of a join leave its state when the watermark tells that no partner comes.
        ttl: a duration: rows of a join are partners only if their event times are at most so far apart, and leave as
            with `expire`.  Without a join, rows whose event time is further before the watermark do not count, and
            leave.
        expect: name → condition of Spark's SQL over a row of the view, which each row is expected to fulfil; or a
            condition over the view as a whole.
        on_violation: `"count"` counts the rows that do not, `"hold"` also closes the gate while there are some;
            `"quarantine"` leaves them out: the view `NAME_quarantine` has them, see `parts`.
        half: which rows of the view `whole` this one has; None if it is no part of another.
        whole: the declaration that it is a part of.

    Raises:
        ViewError: the name, the function's parameters or an option cannot be used.
    """

    name: str
    query: str | None = None
    function: Callable[..., Any] | None = None
    on_full: Policy = "refuse"
    refresh_interval_s: float = 0.0
    replace: bool = False
    cascade: bool = False
    on_missing: Policy = "refuse"
    emit: Emit | None = None
    expire: Expire | None = None
    ttl: Duration | None = None
    expect: Mapping[str, str | ViewCondition] = field(default_factory=dict)
    on_violation: OnViolation = "count"
    half: Half | None = None
    whole: ViewDefinition | None = None

    def __post_init__(self) -> None:
        if not _IDENTIFIER.fullmatch(self.name):
            raise ViewError(
                f"view {self.name!r}: the name must be letters, digits and underscores, with a letter first; rename it"
            )
        if (self.query is None) == (self.function is None):
            raise ViewError(f"view {self.name!r}: give it either a query or a function")
        if self.query is not None and not self.query.strip():
            raise ViewError(f"view {self.name!r}: the query is empty; write a SELECT over a source")
        for option, value in (("on_full", self.on_full), ("on_missing", self.on_missing)):
            if value not in get_args(Policy):
                raise ViewError(f"view {self.name!r}: {option}={value!r} is neither 'refuse' nor 'allow'")
        if self.emit not in (None, *get_args(Emit)):
            raise ViewError(f"view {self.name!r}: emit={self.emit!r} is not 'on_close'")
        if self.expire not in (None, *get_args(Expire)):
            raise ViewError(f"view {self.name!r}: expire={self.expire!r} is not 'by_watermark'")
        if self.ttl_us == 0:
            raise ViewError(f'view {self.name!r}: ttl={self.ttl!r}: give a duration above 0, such as "7 days"')
        if not self.refresh_interval_s >= 0:
            raise ViewError(f"view {self.name!r}: refresh_interval_s={self.refresh_interval_s} is below 0")
        self._check_expectations()
        if self.function is not None:
            self._check_parameters(self.function)

    @classmethod
    def of(
        cls, name_or_function: str | Callable[..., Any], query: str | None, **options: Unpack[ViewOptions]
    ) -> ViewDefinition:
        """The declaration of a view by name and SQL, or by a function of that name.

        Raises:
            ViewError: the first argument is neither a name nor a function, or as for the class.
        """
        if isinstance(name_or_function, str):
            if query is None:
                raise ViewError(f"view {name_or_function}: its query is missing; write view(name, query)")
            return cls(name_or_function, query=query, **options)
        if not inspect.isfunction(name_or_function):
            raise ViewError("a view is a name with a query, or a function")
        return cls(name_or_function.__name__, function=name_or_function, **options)

    @property
    def row_conditions(self) -> dict[str, str]:
        """The expectations that are about single rows: name → condition."""
        return {name: each for name, each in self.expect.items() if isinstance(each, str)}

    @property
    def view_conditions(self) -> dict[str, ViewCondition]:
        """The expectations that are about the view as a whole: name → condition."""
        return {name: each for name, each in self.expect.items() if not isinstance(each, str)}

    @property
    def parts(self) -> tuple[ViewDefinition, ...]:
        """The views that are kept for it: itself, or one of the rows that fulfil its conditions and one of the rest.

        They are added, replaced and dropped together.
        """
        if self.on_violation != "quarantine" or self.whole is not None:
            return (self,)
        conditions = self.row_conditions

        def part(half: Half, **changes: Any) -> ViewDefinition:
            query = None if self.query is None else half_of_query(self.query, half, conditions)
            return replace(self, query=query, half=half, whole=self, **changes)

        return (
            part("fulfilling", expect=self.view_conditions, on_violation="count"),
            part("violating", expect=conditions, name=f"{self.name}_quarantine"),
        )

    def own_rows(self, frame: DataFrame) -> DataFrame:
        """The rows of its half, of a frame that its function has returned."""
        if self.whole is None or self.half is None:
            return frame
        return half_of_frame(frame, self.half, self.whole.row_conditions)

    def mentions(self, names: Iterable[str]) -> frozenset[str]:
        """The sources or views among `names` that it may read: those in its text, or in its parameters.

        Nothing is parsed here, so that a column of a query may be among them.
        """
        words = self.parameters if self.query is None else _WORD.findall(self.query)
        mentioned = {each.lower() for each in words}
        return frozenset(name for name in names if name.lower() in mentioned)

    @property
    def ttl_us(self) -> int | None:
        """`ttl` in microseconds.

        Raises:
            ViewError: invalid duration.
        """
        if self.ttl is None:
            return None
        try:
            return microseconds("ttl", self.ttl)
        except SettingsError as error:
            raise ViewError(f"view {self.name!r}: {error}") from None

    @property
    def ttl_text(self) -> str:
        """`ttl` as the user wrote it, or as it could be written; empty without."""
        if isinstance(self.ttl, str):
            return self.ttl.strip()
        return "" if self.ttl_us is None else duration_text(self.ttl_us)

    @property
    def expires(self) -> bool:
        """Whether rows leave its state by the watermarks."""
        return self.expire is not None or self.ttl is not None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The sources and views that the function's parameters name; empty for a query, which the analysis reads."""
        return () if self.function is None else tuple(inspect.signature(self.function).parameters)

    def _check_expectations(self) -> None:
        if self.on_violation not in ON_VIOLATION:
            raise ViewError(
                f"view {self.name!r}: on_violation={self.on_violation!r} is none of 'count', 'hold' and 'quarantine'"
            )
        is_mapping = isinstance(self.expect, Mapping)
        if not is_mapping or not all(isinstance(each, str | ViewCondition) for each in self.expect.values()):
            raise ViewError(
                f"view {self.name!r}: expect={self.expect!r} is no dict of conditions; write "
                'expect={"amount is positive": "amount > 0"}'
            )
        for name, condition in self.expect.items():
            if not isinstance(name, str) or not name.strip() or (isinstance(condition, str) and not condition.strip()):
                raise ViewError(f"view {self.name!r}: expectation {name!r} lacks a name or a condition")
        needed = self.row_conditions if self.on_violation == "quarantine" else self.expect
        if self.on_violation != "count" and not needed and self.whole is None:
            raise ViewError(
                f"view {self.name!r}: on_violation={self.on_violation!r} needs expectations; add "
                'expect={"amount is positive": "amount > 0"}'
            )

    def _check_parameters(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        if not parameters:
            raise ViewError(
                f"view {self.name!r}: its function has no parameter; each names a source or a view, "
                "as in def view(flights)"
            )
        for parameter in parameters:
            plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if not plain or parameter.default is not parameter.empty:
                raise ViewError(
                    f"view {self.name!r}: parameter {str(parameter)!r} is not plain; "
                    "each parameter is the name of a source or a view, without default and without *"
                )


def parts_of(name: str, definitions: Mapping[str, ViewDefinition]) -> tuple[str, ...]:
    """The views that are dropped with a view: itself, and the other half of its rows.

    Args:
        definitions: name → definition of each declared view.
    """
    declared = definitions.get(name)
    return (name,) if declared is None or declared.whole is None else tuple(each.name for each in declared.whole.parts)


def sources_read(definitions: Mapping[str, ViewDefinition], sources: Collection[str]) -> dict[str, frozenset[str]]:
    """View → the sources that it may read, also by way of other views; see `ViewDefinition.mentions`.

    Args:
        definitions: name → definition of each declared view.
    """
    mentioned = {name: each.mentions(definitions) for name, each in definitions.items()}
    found = {}
    for name in definitions:
        reached, ahead = {name}, [name]
        while ahead:
            new = mentioned[ahead.pop()] - reached
            reached |= new
            ahead += new
        found[name] = frozenset[str]().union(*(definitions[each].mentions(sources) for each in reached))
    return found
