"""The CLI command `init`: the module of a pipeline that reads the files below a directory or URL."""

from __future__ import annotations

import json
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.terminal.output import Output
from slackwater.status.text import shell_root
from state.errors import UsageError
from state.location import Location
from state.removal.local_files import new_file

if TYPE_CHECKING:
    from actors.formats.registry import Format
    from slackwater.planning.samples.proposal import ProposedSource

_MODULE = '''\
"""The pipeline: SQL views over files, kept up to date.

    slackwater run {file}:pipeline --dry-run    plans the first run, and writes nothing
    slackwater run {file}:pipeline              runs until Ctrl-C; the next run continues
    slackwater sql {shell_root} "SELECT * FROM {view}"
"""

import slackwater as sw

pipeline = sw.Pipeline(
    {name},
    root={root},  # the ledger of files, and the views: a directory or a URL
)

{sources}
# A view changes with each new file.  There may be several, and one may read another.
pipeline.view("{view}", {query})
'''
_SOURCE = """\
# {files}, of which {read:,} rows were read as a trial.{remarks}
pipeline.source(
    {name},
    {url},
    format={format},
    pattern={pattern},
    schema={schema},
)
"""
_WIDTH = 100


@command()
def init(
    url: Annotated[str | None, typer.Argument(help="the directory or URL of existing files")] = None,
    file: Annotated[Path, typer.Option("--file", help="the module to write")] = Path("app.py"),
    name: Annotated[str | None, typer.Option("--name", help="the pipeline's name")] = None,
    root: Annotated[str, typer.Option("--root", help="the directory or URL of the ledger and the views")] = "root",
    query: Annotated[str | None, typer.Option("--query", help="the first view, in SQL")] = None,
) -> None:
    """Write the module of a pipeline for existing files: their format, options, types and patterns."""
    from actors.settings import FetchSettings
    from slackwater.pipeline import Pipeline
    from slackwater.planning.samples.proposal import identifier, location_of, propose

    if file.exists():
        raise UsageError(f"{file} exists, and stays as it is: name another file with --file")
    if file.suffix != ".py" or not file.parent.is_dir():
        raise UsageError(f"{file} cannot be a module: name a file *.py in a directory that exists")
    url = url or typer.prompt("Directory or URL of the files")
    location = location_of(url)
    proposal = propose(location, FetchSettings())
    if not proposal.sources:
        reasons = "; ".join(proposal.others) or "it has no files yet"
        raise UsageError(f"no source is proposed for {location.url}: {reasons}")
    name = name or identifier(Path.cwd().name)
    first = proposal.sources[0].source.name
    view, query = "first_view", query or f"SELECT count(*) AS n FROM {first}"
    pipeline = Pipeline(name, root)
    for each in proposal.sources:
        made = each.source
        pipeline.source(made.name, url, format=made.format, pattern=made.pattern, schema=made.schema)
    pipeline.view(view, query)
    module = _MODULE.format(
        name=_literal(name),
        file=file,
        shell_root=shell_root(Location(root)).replace("\\", "\\\\").replace('"""', "'''"),
        root=_literal(root),
        sources="\n".join(_source(each, url) for each in proposal.sources),
        view=view,
        query=_literal(query),
    )
    try:
        with new_file(file) as created:
            created.write(module.encode())
    except FileExistsError:
        raise UsageError(f"{file} exists, and stays as it is: name another file with --file") from None
    output = Output()
    for each in proposal.sources:
        made = each.source
        files = f"{each.files:,} file{'s' * (each.files != 1)}"
        output.text(f"source {made.name}: {files} of {made.format.name}, {len(made.schema or ()):,} columns")
        for fault in each.faults[:3]:
            output.text(f"    not read: {fault}")
    for other in proposal.others:
        output.text(f"left out: {other}")
    output.text(f"{file} is written: read it, and change it.  Next:")
    output.text(f"    slackwater run {file}:pipeline --dry-run")


def _source(proposed: ProposedSource, url: str) -> str:
    """The declaration of a source, as Python."""
    from actors.schemas.ddl import format_schema

    source = proposed.source
    assert source.schema is not None
    columns = [format_schema(source.schema.empty_table().select([name]).schema) for name in source.schema.names]
    one_line = _literal(", ".join(columns))
    lines = "".join(f"\n        {_literal(column + ', ' * (column != columns[-1]))}" for column in columns)
    remarks = [f"Not read: {fault}" for fault in proposed.faults[:3]]
    if proposed.keys:
        remarks.append(
            f"Each row has its own {proposed.keys[0]}.  If a later row replaces an earlier row with the same "
            f"{proposed.keys[0]}, add key={_literal(proposed.keys[0])}."
        )
    return _SOURCE.format(
        files=f"{proposed.files:,} file{'s' * (proposed.files != 1)}",
        read=proposed.read,
        remarks="".join(f"\n{line}" for remark in remarks for line in _comment(remark)),
        name=_literal(source.name),
        url=_literal(url),
        format=_written_format(source.format),
        pattern=_literal(source.pattern),
        schema=one_line if len(one_line) < _WIDTH else f"({lines}\n    )",
    )


def _written_format(format: Format) -> str:
    """The name of a format, or its class with the options that differ from a default."""
    options = [
        f"{each.name}={_literal(getattr(format, each.name))}"
        for each in fields(format)  # type: ignore[arg-type]
        if each.init and getattr(format, each.name) != each.default
    ]
    return f"sw.{type(format).__name__}({', '.join(options)})" if options else _literal(format.name)


def _comment(text: str) -> list[str]:
    """The lines of a comment; text of a file may have any character."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return textwrap.wrap(" ".join(printable.split()), _WIDTH, initial_indent="# ", subsequent_indent="#   ")


def _literal(value: object) -> str:
    """A value as a literal of Python: JSON has the same texts, with double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
