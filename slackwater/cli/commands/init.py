"""The CLI command `init`: the module of a pipeline that reads the files below a directory or URL."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.terminal.output import Output
from slackwater.status.text import shell_root
from state.errors import SettingsError, UsageError
from state.location import Location
from state.removal.local_files import new_file
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.planning.samples.proposal import ProposedSource

_MODULE = '''\
"""The pipeline: SQL views over files, kept up to date.

    slackwater run {target} --dry-run    plans the first run, and writes nothing
    slackwater run {target}              runs until Ctrl-C; the next run continues
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
# {files}; {opened:,} of them were opened as a trial, and {read:,} rows read.{remarks}
pipeline.source(
    {name},
    {url},
    format={format},
    pattern={pattern},
    schema={schema},
)
"""
_WIDTH = 100
_MOST_FAULTS = 3


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
    from slackwater.places.overlap_table import require_apart
    from slackwater.places.pipeline_places import pipeline_places
    from slackwater.planning.samples.found_format import literal
    from slackwater.planning.samples.proposal import identifier, location_of, propose

    if file.exists():
        raise UsageError(f"{file} exists, and stays as it is: name another file with --file")
    if file.suffix != ".py" or not file.parent.is_dir():
        raise UsageError(f"{file} cannot be a module: name a file *.py in a directory that exists")
    url = url or _asked_url()
    location = location_of(url)
    if location.is_local and location.path.is_file():
        raise UsageError(f"{url} is a file: give the directory that contains it")
    proposal = propose(location, FetchSettings())
    if not proposal.sources:
        reasons = "; ".join(proposal.others) or "it has no files yet; give a directory or URL with files"
        raise UsageError(f"no source is proposed for {location.url}: {reasons}")
    # The URL of a `Location` has no credentials; a local path stays as given.
    url = url if location.is_local else location.url
    place = Location(root)
    root = root if place.is_local else place.url
    name = name or identifier(Path.cwd().name)
    first = proposal.sources[0].source.name
    view, query = "first_view", query or f"SELECT count(*) AS n FROM {first}"
    pipeline = Pipeline(name, root)
    for each in proposal.sources:
        made = each.source
        pipeline.source(made.name, url, format=made.format, pattern=made.pattern, schema=made.schema)
    pipeline.view(view, query)
    try:
        require_apart(pipeline_places(place, pipeline.sources.values()))
    except SettingsError as error:
        raise UsageError(f"{error} (--root gives the place of the root)") from None
    target = shlex.quote(f"{file}:pipeline")
    module = _MODULE.format(
        name=literal(name),
        target=_in_docstring(target),
        shell_root=_in_docstring(shell_root(place)),
        root=literal(root),
        sources="\n".join(_source(each, url) for each in proposal.sources),
        view=view,
        query=literal(query),
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
        for line in _remarks(each):
            output.text(f"    {line}")
    for other in proposal.others:
        output.text(f"left out: {other}")
    output.text(f"{file} is written: read it, and change it.  Next:")
    output.text(f"    slackwater run {target} --dry-run")


def _source(proposed: ProposedSource, url: str) -> str:
    """The declaration of a source, as Python."""
    import pyarrow as pa

    from actors.schemas.ddl import format_schema
    from slackwater.planning.samples.found_format import literal, written_format

    source = proposed.source
    assert source.schema is not None
    columns = [format_schema(pa.schema([field])) for field in source.schema]
    one_line = literal(", ".join(columns))
    lines = "".join(f"\n        {literal(column + ', ' * (column != columns[-1]))}" for column in columns)
    schema = one_line if len(one_line) < _WIDTH else f"({lines}\n    )"
    remarks = _remarks(proposed)
    if proposed.keys:
        remarks.append(
            f"Each row has its own {proposed.keys[0]}.  If a later row replaces an earlier row with the same "
            f"{proposed.keys[0]}, add key={literal(proposed.keys[0])}."
        )
    return _SOURCE.format(
        files=f"{proposed.files:,} file{'s' * (proposed.files != 1)}",
        opened=proposed.opened,
        read=proposed.read,
        remarks="".join(f"\n{line}" for remark in remarks for line in _comment(remark)),
        name=literal(source.name),
        url=literal(url),
        format=written_format(source.format),
        pattern=literal(source.pattern),
        schema=f'sw.Schema({schema}, evolution="lenient")' if proposed.lacking else schema,
    )


def _remarks(proposed: ProposedSource) -> list[str]:
    """The remarks about files that differ from most files of the source."""
    from actors.schemas.column_names import names_text

    remarks = [f"not read: {fault}" for fault in proposed.faults[:_MOST_FAULTS]]
    if len(proposed.faults) > _MOST_FAULTS:
        remarks.append(f"not read: {len(proposed.faults) - _MOST_FAULTS} more of the opened files, or records of them")
    if proposed.lacking:
        remarks.append(f'some files lack {names_text(proposed.lacking)}: evolution="lenient" reads null for them')
    return remarks


def _asked_url() -> str:
    try:
        return str(typer.prompt("Directory or URL of the files"))
    except typer.Abort:
        raise UsageError("give the directory or URL of the files: slackwater init DIRECTORY") from None


def _comment(text: str) -> list[str]:
    """The lines of a comment; text of a file may have any character."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return textwrap.wrap(" ".join(printable.split()), _WIDTH, initial_indent="# ", subsequent_indent="#   ")


def _in_docstring(text: str) -> str:
    """A text as a part of a docstring."""
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')
