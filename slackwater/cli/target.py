"""Loads the pipeline that a command line names: `app.py:pipeline` or `package.module:pipeline`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, get_args, get_type_hints

import slackwater
from state.errors import SlackwaterError, UsageError

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline

_UNKNOWN_ARGUMENT = re.compile(r"(\w+)\.(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def load_pipeline(target: str) -> Pipeline:
    """Imports the module in `target`, and returns its pipeline.

    Args:
        target: a Python file or a module, a colon, and the name of a `Pipeline`, or of a function without parameters
            that returns one.

    Raises:
        UsageError: the file, module or name does not exist, or is not a pipeline; or its code fails.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{target!r} does not name a pipeline: give FILE.py:NAME or MODULE:NAME, e.g. app.py:pipeline")
    is_file = place.endswith(".py") or os.sep in place
    module = _from_file(Path(place)) if is_file else _from_module(place)
    return _pipeline(module, place, name)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path} (looked in {Path.cwd()}): correct the part before the colon")
    _make_importable(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file: name it *.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with _mistakes_placed():
        spec.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    _make_importable(Path.cwd())
    try:
        with _mistakes_placed():
            return importlib.import_module(name)
    except UsageError as error:
        cause = error.__cause__
        missing = (cause.name or "") if isinstance(cause, ModuleNotFoundError) else None
        if missing is None or (name != missing and not name.startswith(missing + ".")):
            raise
        raise UsageError(
            f"there is no module {name}: give a file (app.py:pipeline), or start in the directory of the module"
        ) from None


@contextmanager
def _mistakes_placed() -> Iterator[None]:
    """Names the file and the line of a mistake in the user's code.

    Raises:
        UsageError: in place of a usage error, and of each error that is not ours.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, SlackwaterError) and not isinstance(error, UsageError):
            raise
        kind = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
        raise UsageError(f"{_place_of(error)}{kind}{_said(error)}{_suggestion(error)}") from error


def _place_of(error: Exception) -> str:
    """File and line of the user's code that failed, as the beginning of a message."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}: "
    own = str(Path(__file__).parents[2])
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    packages = tuple(os.path.join(own, name) + os.sep for name in ("slackwater", "actors", "spark_bridge", "state"))
    users = [each for each in frames if not each.filename.startswith(packages) and "site-packages" not in each.filename]
    users = [each for each in users if not each.filename.startswith(os.path.dirname(os.__file__) + os.sep)]
    return f"{users[-1].filename}:{users[-1].lineno}: " if users else ""


def _said(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _suggestion(error: Exception) -> str:
    """The arguments that a misspelt one of a public class may mean."""
    found = _UNKNOWN_ARGUMENT.search(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return ""
    owners = [getattr(module, found[1]) for module in (slackwater, slackwater.settings) if found[1] in module.__all__]
    if not owners or not hasattr(owners[0], found[2]):
        return ""
    method = getattr(owners[0], found[2])
    known = [name for name in inspect.signature(method).parameters if name != "self"]
    nested = _arguments_of_values(method)
    close = difflib.get_close_matches(found[3], [*known, *nested], 1)
    if not close:
        return f"; the arguments are: {', '.join(known)}"
    return f"; did you mean {repr(close[0]) if close[0] in known else nested[close[0]]}?"


def _arguments_of_values(method: Callable[..., object]) -> Mapping[str, str]:
    """Argument of a public class that a parameter takes → its spelling."""
    found: dict[str, str] = {}
    try:
        hints = get_type_hints(method)
    except NameError:
        # A type is imported only for type checkers.
        return found
    for parameter, kind in hints.items():
        for value in get_args(kind):
            if is_dataclass(value) and isinstance(value, type) and value.__name__ in slackwater.__all__:
                for each in fields(value):
                    found.setdefault(each.name, f"{parameter}=sw.{value.__name__}({each.name}=...)")
    return found


def _make_importable(directory: Path) -> None:
    """Makes modules importable here, and in the processes that run the user's functions."""
    text = str(directory)
    if text not in sys.path:
        sys.path.insert(0, text)
    known = os.environ.get("PYTHONPATH", "")
    if text not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (text, known)))


def _pipeline(module: ModuleType, place: str, name: str) -> Pipeline:
    from slackwater.pipeline import Pipeline

    missing = object()
    found = getattr(module, name, missing)
    if found is missing:
        here = sorted(
            key for key, value in vars(module).items() if isinstance(value, Pipeline) or _makes(module, value)
        )
        hint = (
            f"it has {', '.join(f'{place}:{key}' for key in here)}"
            if here
            else "give a slackwater.Pipeline a name in it"
        )
        raise UsageError(f"{place} has no {name!r}; {hint}")
    if callable(found) and not isinstance(found, (type, Pipeline)):
        with _mistakes_placed():
            found = found()
    if not isinstance(found, Pipeline):
        raise UsageError(f"{place}:{name} is of type {type(found).__name__}: name a slackwater.Pipeline")
    return found


def _makes(module: ModuleType, value: object) -> bool:
    """True for a function of the module itself that could return a pipeline: it has no parameters."""
    return inspect.isfunction(value) and value.__module__ == module.__name__ and not inspect.signature(value).parameters
