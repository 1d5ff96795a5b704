"""The CLI command `init`: the first module of a pipeline, from the answers to five questions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.terminal.output import Output
from slackwater.status.text import shell_root
from state.errors import UsageError
from state.location import Location
from state.removal.local_files import new_file

_WORDS = re.compile(r"[A-Za-z0-9]+")

_MODULE = '''\
"""The pipeline: SQL views over files, kept up to date.

    slackwater run {file}:pipeline --dry-run    plans the first run, and writes nothing
    slackwater run {file}:pipeline              runs until Ctrl-C; the next run goes on from there
    slackwater sql {shell_root} "SELECT * FROM first_view"
"""

import slackwater as sw

pipeline = sw.Pipeline(
    {name},
    root={root},  # the ledger of files, and the views: a directory or a URL
    # alerts=[sw.Alert("quarantined files > 0", to="https://...")],
)

# Every file below this directory or URL is read once.  Its first files tell the columns.  Further arguments:
#     schema="id bigint, at timestamp"   the columns, decided here
#     pattern="**/*.parquet"             only such names
#     materialize=True                   keep all rows, so that files can be replaced and forgotten
pipeline.source({source}, {url}, format={format})

# A view changes with each new file.  There may be several, and one may read another.
pipeline.view("first_view", {query})
'''


@command()
def init(
    file: Annotated[Path, typer.Argument(help="the module to write")] = Path("app.py"),
    name: Annotated[str | None, typer.Option("--name", help="the pipeline's name")] = None,
    url: Annotated[str | None, typer.Option("--url", help="where the files arrive: a directory or a URL")] = None,
    format: Annotated[str | None, typer.Option("--format", help="the format of the files")] = None,
    root: Annotated[str | None, typer.Option("--root", help="where the views go: a directory or a URL")] = None,
    query: Annotated[str | None, typer.Option("--query", help="the first view, in SQL")] = None,
) -> None:
    """Write the module of a new pipeline, from five answers.  Options answer in advance."""
    from actors.formats.registry import FORMATS
    from slackwater.pipeline import Pipeline

    if file.exists():
        raise UsageError(f"{file} exists, and stays as it is: name another file")
    if file.suffix != ".py" or not file.parent.is_dir():
        raise UsageError(f"{file} cannot be a module: name a file *.py in a directory that exists")
    name = name or typer.prompt("Name of the pipeline", default=_identifier(Path.cwd().name))
    pipeline = Pipeline(name, "unused")
    url = url or typer.prompt("Directory or URL of the files")
    source = _identifier(url.rstrip("/").rpartition("/")[2])
    format = format or typer.prompt(f"Format of the files ({', '.join(FORMATS)})", default="parquet")
    pipeline.source(source, url, format=format)
    root = root or typer.prompt("Directory or URL of the views", default="root")
    shown_root = shell_root(Location(root))
    query = query or typer.prompt("First view, in SQL", default=f"SELECT count(*) AS n FROM {source}")
    pipeline.view("first_view", query)
    module = _MODULE.format(
        name=_literal(name),
        file=file,
        shell_root=shown_root.replace("\\", "\\\\").replace('"""', "'''"),
        root=_literal(root),
        source=_literal(source),
        url=_literal(url),
        format=_literal(format),
        query=_literal(query),
    )
    try:
        with new_file(file) as created:
            created.write(module.encode())
    except FileExistsError:
        raise UsageError(f"{file} exists, and stays as it is: name another file") from None
    output = Output()
    output.text(f"{file} is written: read it, and change it.  Next:")
    output.text(f"    slackwater run {file}:pipeline --dry-run")


def _literal(text: str) -> str:
    """A text as a literal of Python: JSON has the same ones."""
    return json.dumps(text, ensure_ascii=False)


def _identifier(text: str) -> str:
    """A name like a text: letters, digits and underscores, with a letter first."""
    name = "_".join(_WORDS.findall(text)).lower()
    return name if name[:1].isalpha() else f"files_{name}".rstrip("_")
