"""Sources, views and published tables as datasets: their names, schemas and versions.

Names follow https://openlineage.io/docs/spec/naming: a bucket is a namespace; the namespace of a local path is `file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.generated.base import DatasetFacet


@dataclass(frozen=True)
class LineageDataset:
    """A dataset.

    Args:
        namespace, name: its name in OpenLineage.
        schema: its columns; None if they are not known.
        version: its version; empty if it has none.
    """

    namespace: str
    name: str
    schema: pa.Schema | None = field(default=None, compare=False)
    version: str = ""

    @classmethod
    def at(cls, url: str, part: str = "", *, schema: pa.Schema | None = None, version: str = "") -> LineageDataset:
        """The dataset at a URL or a local path.

        Args:
            part: a path below it.
        """
        parts = urlsplit(url)
        path = f"{parts.path.rstrip('/')}/{part}".rstrip("/") if part else parts.path.rstrip("/")
        if parts.scheme in ("", "file"):
            return cls("file", path or "/", schema, version)
        return cls(f"{parts.scheme}://{parts.netloc}", path.strip("/") or "/", schema, version)

    def as_input(self) -> InputDataset:
        from openlineage.client.event_v2 import InputDataset

        return InputDataset(self.namespace, self.name, facets=dict(self._facets()))

    def as_output(self) -> OutputDataset:
        from openlineage.client.event_v2 import OutputDataset

        return OutputDataset(self.namespace, self.name, facets=dict(self._facets()))

    def _facets(self) -> Mapping[str, DatasetFacet]:
        from openlineage.client.facet_v2 import dataset_version_dataset, schema_dataset

        facets: dict[str, DatasetFacet] = {}
        if self.schema is not None:
            columns = [schema_dataset.SchemaDatasetFacetFields(each.name, str(each.type)) for each in self.schema]
            facets["schema"] = schema_dataset.SchemaDatasetFacet(columns)
        if self.version:
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(self.version)
        return facets
