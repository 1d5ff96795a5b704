"""The CLI command about the gate: `held`."""

from __future__ import annotations

from slackwater.cli.application import command
from slackwater.cli.options import Json, Root, StorageOptions, Wide, opened_store
from slackwater.cli.terminal.output import Output


@command()
def held(root: Root, wide: Wide = False, option: StorageOptions = None, json: Json = False) -> None:
    """Print the views that are held back, with their violated expectations and the files that brought the rows.

    Publications, `serve` and the tag `published` stay at the last epoch that fulfilled them.
    """
    from slackwater.cli.display.expectation_list import print_held

    print_held(opened_store(root, option), Output(json, wide))
