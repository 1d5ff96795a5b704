"""The identity of a view sees all that the code of its Python functions sees."""

from __future__ import annotations

import linecache
import os
import random
import subprocess
import sys
import textwrap
from types import ModuleType
from typing import Any

import pytest

from spark_bridge.plans.function_source import definition_text, identity_texts

APP = """
    import functools
    import re
    from dataclasses import dataclass
    from enum import Enum
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    {code}

    u = F.udf(look, StringType())

    def v(t):
        return t.select('id', u('k').alias('n'))
"""
SEEN = {
    "a dict": "NAMES = {'a': @}\ndef look(k): return NAMES.get(k)",
    "the order of a dict": "NAMES = {@: 1, 'x': 2}\ndef look(k): return next(iter(NAMES))",
    "a tuple": "C = (1, @)\ndef look(k): return C[1]",
    "a set": "C = {'x', @}\ndef look(k): return str(k in C)",
    "a nested value": "C = [{'a': (1, [@])}]\ndef look(k): return C[0]['a'][1][0]",
    "a long value": "C = [@] * 10_000\ndef look(k): return C[0]",
    "an argument of a partial": "def add(p, k): return p + k\nlook = functools.partial(add, @)",
    "the code of a partial": "def add(p, k): return p + k + @\nlook = functools.partial(add, 'x')",
    "a default": "def look(k, p=@): return p + k",
    "a default of a keyword": "def look(k, *, p=@): return p + k",
    "a pattern": "C = re.compile(@)\ndef look(k): return str(C.match(k))",
    "a member of an enumeration": "class E(Enum):\n    A = @\ndef look(k): return E.A.value",
    "the state of a callable object": (
        "class L:\n    def __init__(self, p): self.p = p\n    def __call__(self, k): return self.p + k\nlook = L(@)"
    ),
    "the code of a callable object": "class L:\n    def __call__(self, k): return @ + k\nlook = L()",
    "a constant of a callable object": "C = @\nclass L:\n    def __call__(self, k): return C + k\nlook = L()",
    "a class above its class": (
        "class B:\n    def p(self): return @\nclass L(B):\n    def __call__(self, k): return self.p() + k\nlook = L()"
    ),
    "a method": "class L:\n    p = @\n    def look(self, k): return self.p + k\nlook = L().look",
    "a data class": "@@dataclass\nclass D:\n    p: str\nC = D(@)\ndef look(k): return C.p + k",
    "a cached function": "@@functools.cache\ndef p(): return @\ndef look(k): return p() + k",
    "another lambda": "a, b = (lambda k: k), [\n    lambda k: @ + k][0]\ndef look(k): return b(a(k))",
    "the code of a wrapper that keeps the wrapped function": (
        "def more(f):\n    @@functools.wraps(f)\n    def g(k): return f(k) + @\n    return g\n"
        "@@more\ndef look(k): return k"
    ),
    "one of the lambdas of a line": ("ALL = {'Alpha': lambda k: k, 'Beta': lambda k: k + k}\nlook = ALL[@]"),
    "an attribute of a function": "def p(k): return p.size + k\np.size = @\ndef look(k): return p(k)",
    "a computed attribute of a class": "N = @\nclass C:\n    p = N\ndef look(k): return C.p + k",
    "a function that a class gets later": (
        "def made(n): return lambda self: n\nclass C: pass\nC.p = made(@)\ndef look(k): return C().p()"
    ),
    "a constant of a cached property": (
        "N = @\nclass C:\n    @@functools.cached_property\n    def p(self): return N\ndef look(k): return C().p"
    ),
    "a constant of a cached method": (
        "N = @\nclass C:\n    @@functools.lru_cache\n    def p(self): return N\ndef look(k): return C().p()"
    ),
    "a constant of a class in a class": (
        "N = @\nclass C:\n    class D:\n        def p(self): return N\ndef look(k): return C.D().p()"
    ),
    "the class of a class": (
        "class M(type):\n    def __getitem__(cls, k): return @\nclass C(metaclass=M): pass\ndef look(k): return C[k]"
    ),
    "the code of a kind of text": "class T(str):\n    def p(self): return @\nC = T('x')\ndef look(k): return C.p() + k",
    "a text of a kind that prints otherwise": (
        "class T(str):\n    def __repr__(self): return 'T'\nC = T(@)\ndef look(k): return C + k"
    ),
    "the object of a method in C": "look = {'x': @}.get\nlook = functools.partial(look, 'x')",
    "a function in a list": "def p(k): return @ + k\nALL = [p]\ndef look(k): return ALL[0](k)",
}


def texts_of(code: str, name: str = "app") -> list[str]:
    """The texts of the function `v` of an application with this code."""
    source = textwrap.dedent(APP).format(code=code)
    module = ModuleType(name)
    module.__file__ = f"/{name}-{abs(hash(source))}.py"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(keepends=True), module.__file__)
    sys.modules[name] = module
    try:
        exec(compile(source, module.__file__, "exec"), vars(module))
        return identity_texts(module.v)
    finally:
        del sys.modules[name]


def with_value(code: str, value: str) -> str:
    return code.replace("@@", "\0").replace("@", repr(value)).replace("\0", "@")


@pytest.mark.parametrize("code", SEEN.values(), ids=SEEN)
def test_a_changed_value_is_another_view_and_an_equal_one_is_not(code: str) -> None:
    known = texts_of(with_value(code, "Alpha"))
    assert texts_of(with_value(code, "Alpha")) == known
    assert texts_of(with_value(code, "Beta")) != known


def test_a_module_of_the_user_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = ModuleType("helpers")
    helpers.__file__ = "/helpers.py"
    monkeypatch.setitem(sys.modules, "helpers", helpers)
    code = "import helpers\ndef look(k): return helpers.NAMES[k]"
    known = {}
    for name in ("Alpha", "Beta"):
        vars(helpers)["NAMES"] = {"a": name}
        known[name] = texts_of(code)
    assert known["Alpha"] != known["Beta"]


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_module_in_a_package_of_the_user_is_followed(monkeypatch: pytest.MonkeyPatch, is_directory: bool) -> None:
    package, rules = ModuleType("helpers"), ModuleType("helpers.rules")
    if is_directory:
        package.__path__ = ["/helpers"]
    else:
        package.__file__ = "/helpers/__init__.py"
    rules.__file__ = "/helpers/rules.py"
    vars(package)["rules"] = rules
    monkeypatch.setitem(sys.modules, "helpers", package)
    monkeypatch.setitem(sys.modules, "helpers.rules", rules)
    code = "import helpers.rules\ndef look(k): return helpers.rules.NAMES[k]"
    vars(rules)["NAMES"] = {"a": "Alpha"}
    known = texts_of(code)
    vars(rules)["NAMES"] = {"a": "Beta"}
    assert texts_of(code) != known


@pytest.mark.parametrize("name", ["random", "randint"])
def test_a_function_of_a_library_that_has_a_state_is_known_by_its_name(name: str) -> None:
    code = f"from random import {name} as p\ndef look(k): return k + str(p(1, 2))"
    known = texts_of(code)
    random.random()
    assert texts_of(code) == known


def test_a_library_is_known_by_its_names_alone() -> None:
    assert texts_of("import json\ndef look(k): return json.dumps(k)") == [
        "look: def look(k):\n    return json.dumps(k)",
    ]


def test_what_cannot_be_pickled_and_what_is_of_this_process_is_known_by_its_kind() -> None:
    code = "import threading\nLOCK = threading.Lock()\ndef look(k): return str(LOCK)"
    assert "look.LOCK: <_thread.lock>" in texts_of(code)


def test_a_class_is_the_same_in_another_module() -> None:
    code = (
        "import abc\nimport logging\nimport threading\n"
        "@dataclass(frozen=True)\nclass D:\n    n: int = 1\n"
        "class E(str, Enum):\n    A = 'a'\n"
        "class B(abc.ABC):\n    lock, log, kinds = threading.Lock(), logging.getLogger('a'), {'a', 'b', 'c'}\n"
        "def look(k): return str((D(), E.A, B))"
    )
    assert texts_of(code) == texts_of(code, "other")


def test_a_value_that_holds_itself_ends() -> None:
    code = "LOOP = ['a']\nLOOP.append(LOOP)\ndef look(k): return str(LOOP)"
    assert texts_of(code) == texts_of(code)


@pytest.mark.more
def test_the_texts_are_the_same_in_another_process() -> None:
    code = "\n".join(with_value(each, "Alpha").replace("look", f"look{at}") for at, each in enumerate(SEEN.values()))
    code += f"\ndef look(k): return {' + '.join(f'look{at}(k)' for at in range(len(SEEN)))}"
    program = f"from tests.spark_bridge.plans.test_function_source import texts_of\nprint(texts_of({code!r}))"
    answers = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert answers[0] == answers[1] == f"{texts_of(code)}\n"


TYPED = """
from pyspark.sql import functions as F
KNOWN = {"a", "b", "c", "d"}
def v(t):
    def look(k):
        try:
            return k.upper() if k in {"p", "q", "r", "s"} else min(KNOWN)
        except ValueError:
            return k
    return t.select(F.udf("string")(look)("k").alias("x"))
"""
PRINTED = """
from spark_bridge.plans.function_source import definition_text, identity_texts
print(definition_text(v), identity_texts(v))
"""
WAYS = {
    "a text that is executed": (f"exec({TYPED!r})\n{PRINTED}", None),
    "standard input": (None, f"{TYPED}\n{PRINTED}"),
    "an argument of the interpreter": (f"{TYPED}\n{PRINTED}", None),
}


@pytest.mark.more
@pytest.mark.parametrize("program", WAYS.values(), ids=WAYS)
def test_a_function_without_source_text_is_the_same_view_in_the_next_process(
    program: tuple[str | None, str | None],
) -> None:
    argument, typed = program
    answers = [
        subprocess.run(
            [sys.executable, *(["-"] if argument is None else ["-c", argument])],
            input=typed,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONWARNINGS": "ignore"},
        ).stdout
        for seed in ("1", "2")
    ]
    assert answers[0] == answers[1]
    assert answers[0].startswith("<function v without source text: byte code of Python ")


def _typed(text: str) -> tuple[str, list[str]]:
    """A view of a text that is executed; its code has no source."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(text, space)
    return definition_text(space["v"]), identity_texts(space["v"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k.upper()", "k.lower()"),
        ('"s"}', '"t"}'),
        ('"d"}', '"e"}'),
        ("ValueError", "TypeError"),
        ("min(KNOWN)", "max(KNOWN)"),
        ("return k\n", "return None\n"),
    ],
)
def test_another_function_without_source_text_is_another_view(old: str, new: str) -> None:
    assert old in TYPED
    known, changed = _typed(TYPED), _typed(TYPED.replace(old, new))
    assert changed[1] != known[1] and _typed(TYPED) == known


def test_a_cell_of_a_notebook_has_its_source_text() -> None:
    """IPython keeps the text of each cell where Python looks for the lines of a file."""
    cell = "<ipython-input-7-0123456789ab>"
    linecache.cache[cell] = (len(TYPED), None, TYPED.splitlines(keepends=True), cell)
    space: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(TYPED, cell, "exec"), space)
        assert definition_text(space["v"]).startswith("def v(t):\n    def look(k):")
        assert "byte code" not in str(identity_texts(space["v"]))
    finally:
        del linecache.cache[cell]
