"""What files show of sources whose schema is not decided, each file once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from actors.fetching.file_progress import FileProgress
from actors.protocol.reports import ProposeSchema
from state.errors import SchemaError


class ShownSchemas:
    """The files of one fetch actor that are sent ahead to show the schema of their source.

    `samples` has source → how many were sent ahead so far, as far as is known here.
    """

    def __init__(self) -> None:
        self.samples: dict[str, int] = {}

    def learn(self, samples: Mapping[str, int]) -> None:
        """Another fetch actor knows this."""
        for source, sample in samples.items():
            self.samples[source] = max(sample, self.samples.get(source, 0))

    def show(self, progress: FileProgress, schema: pa.Schema | SchemaError | None) -> list[ProposeSchema]:
        """Proposes what a file shows, unless it has done so somewhere else already."""
        if progress.has_shown:
            return []
        progress.has_shown = True
        file = progress.file
        return [ProposeSchema(file.source, file.path, schema, self.samples.get(file.source, 0))]
