"""Hooks of mkdocs: they put the generated parts into the pages."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from website.command_page import MARKER, command_reference
from website.navigation import expanded
from website.source_pages import SourcePages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Names every page of the folders that the navigation asks for as a whole."""
    docs = Path(config.docs_dir)
    if config.nav is not None:
        config.nav = expanded(config.nav, sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md")))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each file of the repository that some page links to."""
    for file in _source_pages(config).made(config):
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fills in the commands, and leads links out of `docs` to the pages that were made."""
    if MARKER in markdown:
        markdown = markdown.replace(MARKER, command_reference())
    return _source_pages(config).linked(markdown, page.file.src_uri)


def _source_pages(config: MkDocsConfig) -> SourcePages:
    return SourcePages(Path(config.docs_dir))
