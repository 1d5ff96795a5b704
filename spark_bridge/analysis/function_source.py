"""Source texts of the Python functions of a view, as a part of its identity."""

from __future__ import annotations

import ast
import datetime
import decimal
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

_CONSTANTS = (bool, int, float, str, bytes, decimal.Decimal, datetime.date, datetime.datetime, type(None))


def definition_text(function: Callable[..., Any]) -> str:
    """The source text of a function as written, for people."""
    try:
        return textwrap.dedent(inspect.getsource(function)).strip()
    except (OSError, TypeError):
        return f"<function {getattr(function, '__qualname__', function)!s}>"


def identity_texts(function: Callable[..., Any]) -> list[str]:
    """The canonical text of each user function that a view's function reaches, and of the constants that they use.

    A Spark plan holds a Python UDF as pickled bytes, which differ from run to run; its source text does not.  Comments
    and formatting do not count.  Functions of installed libraries are not followed: Spark's plan names them.
    """
    texts: dict[str, str] = {}
    view_function = _plain(function)
    # The plan has the effect of the view's own function; with its text, a rewording would make another view.  But a
    # function that is defined inside it may be a UDF.
    _follow(view_function, texts, set(), in_plan=not _defines_functions(view_function))
    return [f"{name}: {text}" for name, text in sorted(texts.items())]


def _plain(value: Any) -> Any:
    """The Python function inside a Spark UDF, or the value itself."""
    inner = getattr(value, "func", None)
    return inner if isinstance(inner, FunctionType) else value


def _follow(function: Any, texts: dict[str, str], seen: set[str], in_plan: bool = False) -> None:
    if not isinstance(function, FunctionType) or _is_library(function):
        return
    # Without the module: one file is `__main__` today and imported by the command line tomorrow.
    name = function.__qualname__
    if name in seen:
        return
    seen.add(name)
    if not in_plan:
        texts[name] = _canonical(function)
    for used, value in _used(function):
        plain = _plain(value)
        if isinstance(plain, FunctionType):
            _follow(plain, texts, seen)
        elif isinstance(value, _CONSTANTS) and not in_plan:
            texts[f"{name}.{used}"] = repr(value)


def _defines_functions(function: Any) -> bool:
    constants = function.__code__.co_consts if isinstance(function, FunctionType) else ()
    return any(isinstance(each, CodeType) and not each.co_name.endswith("comp>") for each in constants)


def _used(function: FunctionType) -> list[tuple[str, Any]]:
    """The globals and the enclosing variables that a function's code names, inner functions included."""
    found = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return sorted(found.items())


def _names(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*[_names(part) for part in inner])


def _is_library(function: FunctionType) -> bool:
    path = function.__code__.co_filename
    return "site-packages" in path or "/pyspark/" in path


def _canonical(function: FunctionType) -> str:
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError):
        # Typed into a prompt, or a lambda within an expression: its byte code stands for its source.
        constants = [each for each in function.__code__.co_consts if not isinstance(each, CodeType)]
        return f"{function.__code__.co_code.hex()} {constants!r}"
