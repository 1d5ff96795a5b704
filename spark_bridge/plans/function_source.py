"""Source texts of the Python functions of a view, and the values that they see, as a part of its identity."""

from __future__ import annotations

import ast
import copyreg
import datetime
import decimal
import functools
import hashlib
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import EnumType
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import DataType

_CONSTANTS = (bool, int, float, complex, str, bytes, decimal.Decimal, datetime.date, datetime.timedelta, type(None))
_LIBRARIES = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"], "<frozen ")
_OF_THIS_PROCESS = ("pyspark.", "py4j.")
_LONGEST = 1_000
_OF_PYTHON = ("__wrapped__", "_abc_impl")
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def definition_text(function: Callable[..., Any]) -> str:
    """The source text of a function as written, for people; without one, the version and digest of its byte code."""
    try:
        return textwrap.dedent(inspect.getsource(function)).strip()
    except (OSError, TypeError):
        name = getattr(function, "__qualname__", function)
        code = getattr(function, "__code__", None)
        if code is None:
            return f"<function {name!s}>"
        digest = hashlib.sha256(_code_text(code).encode(errors="surrogatepass")).hexdigest()[:16]
        return f"<function {name!s} without source text: byte code of Python {_PYTHON}, {digest}>"


def constant_texts(function: Callable[..., Any]) -> list[str]:
    """The texts that stand in the code of a function, inner functions included."""
    code = getattr(function, "__code__", None)
    return [] if code is None else [each for each in _constants(code) if isinstance(each, str)]


def identity_texts(function: Callable[..., Any]) -> list[str]:
    """The canonical text of each user function that a view's function reaches, and of the values that they use.

    A Spark plan holds a Python UDF as pickled bytes, which differ from run to run; its source text does not.  Comments
    and formatting do not count.  Values are globals, enclosing variables, defaults, arguments of a `partial`, and the
    state of objects, all that can be pickled.  Functions and classes of installed libraries are not followed: their
    names stand for them.  A function without source text is identified by its byte code, which other versions of Python
    compile differently.
    """
    reached = _Reached()
    reached.follow_view(function)
    return [f"{name}: {text}" for name, text in sorted(reached.texts.items())]


class _Reached:
    """The functions, classes and values that a function reaches.

    Attributes:
        texts: name → text of each user function and class, and of the values that functions use.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._described: dict[int, tuple[str, Any]] = {}

    def follow_view(self, function: Callable[..., Any]) -> None:
        """Follows the function of a view itself.

        The plan has the effect of its code; with its text, a rewording would make another view.  But the code of a UDF
        is not in the plan, nor a function that is defined inside it, which may be a UDF.
        """
        view = _plain(function)
        if not isinstance(view, FunctionType) or _is_library(view.__code__.co_filename) or _defines_functions(view):
            self._text(view)
            return
        self._described[id(view)] = view.__qualname__, view
        used = [value for _, value in _used(view) if _has_code(value)]
        objects = sorted(
            text for value, text in zip(used, map(self._text, used), strict=True) if not _is_function(value)
        )
        if objects:
            self.texts[f"{view.__qualname__} uses"] = ", ".join(objects)

    def _text(self, value: Any) -> str:
        """A value as a text: equal for equal values, in every process."""
        value = _plain(value)
        if isinstance(value, _CONSTANTS) and _is_of_library(type(value)):
            return _short(repr(value))
        if id(value) in self._described:
            return self._described[id(value)][0]
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, BuiltinFunctionType | MethodType) and (known := _library_name(value)):
            return known
        if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | type | None):
            return f"{self._text(value.__self__)}.{value.__name__}"  # such as the method of a dictionary
        if isinstance(value, BuiltinFunctionType | ModuleType):
            return str(getattr(value, "__qualname__", value.__name__))
        self._described[id(value)] = f"<again {len(self._described)}>", value
        return _short(self._object(value))

    def _object(self, value: Any) -> str:
        if isinstance(value, functools.partial):
            return f"partial({self._all((value.func, value.args, value.keywords))})"
        if isinstance(value, MethodType):
            return f"{self._text(value.__self__)}.{self._text(value.__func__)}"
        kind = type(value)
        if kind in (list, tuple):
            return f"{kind.__name__}({self._all(value)})"
        if kind in (set, frozenset):
            return f"{kind.__name__}({', '.join(sorted(map(self._text, value)))})"
        if kind is dict:
            return f"dict({self._all(each for pair in value.items() for each in pair)})"
        if kind.__module__.startswith(_OF_THIS_PROCESS) and not isinstance(value, DataType):
            return repr(value) if isinstance(value, Column) else f"<{kind.__qualname__}>"
        try:
            reduced = copyreg.dispatch_table.get(kind)
            parts = value.__reduce_ex__(4) if reduced is None else reduced(value)
        except Exception:
            # What cannot be pickled reaches no worker.
            return f"<{self._class(kind)}>"
        if isinstance(parts, str):
            return parts
        state = [list(each) if isinstance(each, Iterator) else each for each in parts]
        return f"{kind.__qualname__}({self._all(state)})"

    def _all(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self._text, values))

    def _function(self, function: FunctionType) -> str:
        if _is_library(function.__code__.co_filename):
            return f"{function.__module__}.{function.__qualname__}"
        # Without the module: one file is `__main__` today and imported by the command line tomorrow.
        name = self._named(function, function.__qualname__, _canonical(function))
        for at, value in enumerate((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())):
            self.texts[f"{name} default {at}"] = self._text(value)
        for used, value in [*_used(function), *_attributes(function)]:
            if not isinstance(value, ModuleType) and self._described.get(id(value), ("",))[0] != name:
                self.texts[f"{name}.{used}"] = self._text(value)
        return name

    def _class(self, kind: type) -> str:
        if _is_of_library(kind):
            return f"{kind.__module__}.{kind.__qualname__}"
        name = self._named(kind, kind.__qualname__, _canonical(kind))
        for attribute, value in _attributes(kind):
            self.texts[f"{name}.{attribute}"] = self._text(value)
        if not _is_of_library(type(kind)):
            self._text(type(kind))
        for base in kind.__bases__:
            self._text(base)
        return name

    def _named(self, value: Any, name: str, text: str) -> str:
        """Keeps the text of a function or class under its name, or under a further one if another has that name."""
        others = sum(
            described == name or described.startswith(f"{name} (") for described, _ in self._described.values()
        )
        name = f"{name} ({others + 1})" if others else name
        self._described[id(value)] = name, value
        self.texts[name] = text
        return name


def _plain(value: Any) -> Any:
    """The Python callable inside a Spark UDF or a cache, or the value itself."""
    if isinstance(value, functools._lru_cache_wrapper):
        return value.__wrapped__
    is_udf = hasattr(value, "returnType") and hasattr(value, "evalType")
    return value.func if is_udf else value


def _attributes(code: FunctionType | type) -> list[tuple[str, Any]]:
    """The attributes of a function or class that code can set outside of its source text: methods, classes and values.

    Attributes that Python itself adds are left out, since they differ between its versions.
    """
    found = []
    for name, value in sorted(vars(code).items()):
        if name in _OF_PYTHON or (isinstance(code, EnumType) and _is_of_enumerations(name)):
            continue
        parts = [value.fget, value.fset] if isinstance(value, property) else [_function_in(value)]
        is_special = name.startswith("__") and name.endswith("__")
        for at, part in enumerate(parts):
            if isinstance(part, FunctionType):
                is_added = _is_library(part.__code__.co_filename) and part.__qualname__ == f"{code.__qualname__}.{name}"
                is_added |= is_special and _is_library(part.__code__.co_filename)
            else:
                is_added = is_special or part is None
            if not is_added:
                found.append((f"{name} {at}" if at else name, part))
    return found


def _is_of_enumerations(name: str) -> bool:
    """True if Python itself sets the name in an enumeration, except for the name that holds the members."""
    return name.startswith("_") and name.endswith("_") and not name.startswith("__") and name != "_member_map_"


def _function_in(attribute: Any) -> Any:
    """The function inside a static or class method or a cached property, or the attribute itself."""
    if isinstance(attribute, functools.cached_property):
        return attribute.func
    return _plain(attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute)


def _has_code(value: Any) -> bool:
    """Whether a value is, or holds, code that no plan shows: a UDF, or what may become one."""
    value = _plain(value)
    if isinstance(value, FunctionType):
        return not _is_library(value.__code__.co_filename)
    if isinstance(value, functools.partial | MethodType):
        return True
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_has_code, value))
    if isinstance(value, Mapping):
        return any(map(_has_code, value.values()))
    kind = value if isinstance(value, type) else type(value)
    return callable(value) and not _is_of_library(kind)


def _defines_functions(function: FunctionType) -> bool:
    constants = function.__code__.co_consts
    return any(isinstance(each, CodeType) and not each.co_name.endswith("comp>") for each in constants)


def _used(function: FunctionType) -> list[tuple[str, Any]]:
    """The globals and the enclosing variables that a function's code names, inner functions included.

    Of a module of the user they are what the code names of it.
    """
    names = _names(function.__code__)
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    modules = [(name, value) for name, value in found.items() if isinstance(value, ModuleType)]
    followed = set[int]()
    while modules:
        path, module = modules.pop()
        if _is_library_module(module) or id(module) in followed:
            continue
        followed.add(id(module))
        held = {f"{path}.{name}": getattr(module, name) for name in sorted(names) if hasattr(module, name)}
        found |= held
        modules += [(name, value) for name, value in held.items() if isinstance(value, ModuleType)]
    return sorted(found.items(), key=lambda each: each[0])


def _names(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*[_names(part) for part in inner])


def _is_library(path: str | None) -> bool:
    """Whether a file belongs to Python or to an installed package; a module without one does."""
    return path is None or "site-packages" in path or "/pyspark/" in path or path.startswith(_LIBRARIES)


def _library_name(method: BuiltinFunctionType | MethodType) -> str | None:
    """The name of a method that a library has as a function, such as `random.randint`; None for other methods.

    The state of its object belongs to the process.
    """
    for name in (method.__module__, type(method.__self__).__module__):
        module = sys.modules.get(name or "")
        if module is not None and _is_library_module(module) and getattr(module, method.__name__, None) is method:
            return f"{name}.{method.__name__}"
    return None


def _is_library_module(module: ModuleType) -> bool:
    """As `_is_library`; a package of a user can be a directory without a file of its own."""
    file = getattr(module, "__file__", None)
    return _is_library(file or next(iter(getattr(module, "__path__", ())), None))


def _is_of_library(kind: type) -> bool:
    """Whether a class belongs to Python or to an installed package, and not to a file, notebook or prompt of a user."""
    module = sys.modules.get(kind.__module__)
    return module is not None and kind.__module__ != "__main__" and _is_library(getattr(module, "__file__", None))


def _canonical(code: FunctionType | type) -> str:
    try:
        # Of the code object: of a function with `__wrapped__`, Python finds the source of the wrapped one.
        tree = ast.parse(textwrap.dedent(inspect.getsource(code if isinstance(code, type) else code.__code__)))
    except (OSError, TypeError, SyntaxError):
        # Typed into a prompt, or a lambda within an expression: its byte code stands for its source.
        functions = (
            [code] if isinstance(code, FunctionType) else [*map(_plain, filter(_is_function, vars(code).values()))]
        )
        return f"Python {_PYTHON}: {'; '.join(_code_text(each.__code__) for each in functions)}"
    text = ast.unparse(tree)
    is_one_of_several = sum(isinstance(node, ast.Lambda) for node in ast.walk(tree)) > 1
    if isinstance(code, FunctionType) and code.__name__ == "<lambda>" and is_one_of_several:
        return f"{text}; Python {_PYTHON}: {_code_text(code.__code__)}"
    return text


def _code_text(code: CodeType) -> str:
    """A code object as a text: equal in every process of one version of Python, and other for other code."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    handlers = getattr(code, "co_exceptiontable", b"").hex()
    return f"code({code.co_code.hex()}, {handlers}, {names!r}, {counts!r}, {_constant_text(code.co_consts)})"


def _constant_text(value: Any) -> str:
    if isinstance(value, CodeType):
        return _code_text(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant_text, value))})"
    if isinstance(value, frozenset):  # each process has an order of its own
        return f"{{{', '.join(sorted(map(_constant_text, value)))}}}"
    return repr(value)


def _is_function(value: Any) -> bool:
    return isinstance(_plain(value), FunctionType)


def _constants(code: CodeType) -> list[Any]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    own = [each for each in code.co_consts if not isinstance(each, CodeType)]
    return [*own, *[each for part in inner for each in (part.co_code.hex(), *_constants(part))]]


def _short(text: str) -> str:
    """The text, or the digest of a long one."""
    return text if len(text) <= _LONGEST else f"<{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}>"
