"""`slackwater status`: one screen about a root, made of blocks; the display of a run draws the same blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from slackwater.cli.display.companion_block import RootFilesAfterCommit, RootPublications
from slackwater.cli.display.expectation_list import RootExpectations
from slackwater.cli.display.file_block import RootColumns, RootQuarantine
from slackwater.cli.display.owner_block import RootOwner
from slackwater.cli.display.root_facts import RootBlock, RootFacts
from slackwater.cli.display.source_block import RootSources
from slackwater.cli.display.view_block import RootBackfills, RootInternalViews, RootViews
from slackwater.cli.terminal.output import Output

if TYPE_CHECKING:
    from slackwater.reading.store import Store

_BLOCKS: Final[tuple[Callable[[RootFacts], RootBlock], ...]] = (
    RootOwner,
    RootSources,
    RootViews,
    RootExpectations,
    RootBackfills,
    RootPublications,
    RootFilesAfterCommit,
    RootInternalViews,
    RootColumns,
    RootQuarantine,
)


def print_status(store: Store, output: Output) -> None:
    """Prints the owner of the root, the last epoch, sources, views, quarantined files and bad records."""
    facts = RootFacts.of(store)
    blocks = [block(facts) for block in _BLOCKS]
    if output.json:
        output.document({name: value for block in blocks for name, value in block.document().items()})
        return
    for block in blocks:
        block.show(output)
