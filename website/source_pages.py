"""Files of the repository that pages link to, as pages of their own: a test is a heading, so that a link finds it."""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, InclusionLevel

FOLDER = "source"
_LINK = re.compile(r"\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_LANGUAGES = {".md": "markdown", ".toml": "toml", ".yaml": "yaml"}


class SourcePages:
    """The pages of files outside of the documentation's folder.

    Args:
        docs: the folder of the documentation; the repository is around it.
    """

    def __init__(self, docs: Path) -> None:
        self._docs = docs
        self._repository = docs.parent

    def made(self, config: MkDocsConfig) -> Iterator[File]:
        """A page for each file or folder that some page links to."""
        linked = sorted({path for page in self._docs.rglob("*.md") for path in self._linked_from(page)})
        for path in linked:
            yield File.generated(
                config, _page_of(path), content=self._content(path), inclusion=InclusionLevel.NOT_IN_NAV
            )

    def linked(self, markdown: str, page: str) -> str:
        """A page's text, with its links to files of the repository leading to their pages.

        Args:
            markdown: the text.
            page: its path below the folder of the documentation.
        """

        def led(link: re.Match[str]) -> str:
            path = self._outside(page, link["target"])
            if path is None:
                return link[0]
            target = posixpath.relpath(_page_of(path), posixpath.dirname(page) or ".")
            return f"]({target}{link['anchor'] or ''})"

        return _LINK.sub(led, markdown)

    def _linked_from(self, page: Path) -> Iterator[str]:
        place = page.relative_to(self._docs).as_posix()
        for link in _LINK.finditer(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            path = self._outside(place, link["target"])
            if path is not None:
                yield path

    def _outside(self, page: str, target: str) -> str | None:
        """A link's target relative to the repository, if it is there and outside of the documentation."""
        if "://" in target or target.startswith(("mailto:", "/")):
            return None
        path = posixpath.normpath(posixpath.join(self._docs.name, posixpath.dirname(page), target))
        if path.split("/")[0] in (self._docs.name, "..") or not (self._repository / path).exists():
            return None
        return path

    def _content(self, path: str) -> str:
        file = self._repository / path
        head = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
        if file.is_dir():
            names = sorted(name for name in os.listdir(file) if not name.startswith(("_", ".")))
            return head + "\n".join(f"* `{name}`" for name in names)
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".ipynb":
            return head + _cells(text)
        return head + (_tests_as_headings(text) if file.suffix == ".py" else _fenced(text, _LANGUAGES[file.suffix]))


def _page_of(path: str) -> str:
    return f"{FOLDER}/{path}.md"


def _tests_as_headings(text: str) -> str:
    """The code, with a heading before each test function."""
    lines = text.splitlines()
    parts, begin = [], 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            parts += [_fenced("\n".join(lines[begin:start]), "python"), f"## {node.name} {{#{node.name}}}"]
            begin = start
    return "\n\n".join([*parts, _fenced("\n".join(lines[begin:]), "python")])


def _cells(notebook: str) -> str:
    """A notebook's text and code, its headings below that of the page."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        parts.append(_fenced(source, "python") if cell["cell_type"] == "code" else re.sub("^#", "##", source))
    return "\n\n".join(parts)


def _fenced(text: str, language: str) -> str:
    return f"~~~~{language}\n{text.strip()}\n~~~~" if text.strip() else ""
