"""The CLI command `publish`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from actors.telemetry.logging import redact
from slackwater.cli.application import command
from slackwater.cli.options import AtEpoch, Json, Root, StorageOptions, opened_store
from slackwater.cli.terminal.edge import error_line
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import print_note
from state.errors import SlackwaterError, UsageError
from state.location import is_secret


@command()
def publish(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT:URI", help="the table: delta:URI, iceberg:URI or parquet:URI"),
    ],
    catalog: Annotated[
        list[str] | None,
        typer.Option("--catalog", metavar="KEY=VALUE", help="a property of the Iceberg catalog; repeatable"),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAMESPACE.TABLE", help="the Iceberg table's name in its catalog")
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option("--partition-by", metavar="COLUMN", help="a column of the directories of parquet:URI; repeatable"),
    ] = None,
    epoch: AtEpoch = None,
    adopt: Annotated[
        bool,
        typer.Option("--adopt", help="take a table of this view from another root: one commit replaces all rows"),
    ] = False,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Write a view, or its changes since the table's epoch, to a Delta or Iceberg table or to Parquet files."""
    from slackwater.plugins.publish.publisher import publish
    from slackwater.plugins.publish.targets import target_of
    from slackwater.status.run_status import INCOMPLETE

    target = target_of(to, _properties(catalog), table, partition_by or ())
    published = publish(opened_store(root, option), view, target, epoch=epoch, adopt=adopt)
    output, row = Output(json), asdict(published)
    output.document(row) if json else output.rows([row], [name for name in row if name != "incomplete"])
    if published.incomplete:
        print_note(error_line(SlackwaterError(published.incomplete)))
        sys.exit(INCOMPLETE)


def _properties(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """The properties in `--catalog key=value --catalog ...`.

    Raises:
        UsageError: a pair is not `key=value`, or holds a secret, which only the environment may hold.
    """
    properties: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError("--catalog takes KEY=VALUE, for example --catalog type=rest")
        if is_secret(key) or redact(value) != value:
            variable = f"PYICEBERG_CATALOG__SLACKWATER__{key.upper().replace('-', '_').replace('.', '__')}"
            raise UsageError(
                f"--catalog {key} is refused: every user of the machine can read secrets on the command line; set the "
                f"environment variable {variable}"
            )
        properties[key] = value
    return properties or None
