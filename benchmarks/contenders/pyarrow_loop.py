"""obstore and pyarrow: lists a prefix of a bucket, reads its objects in 32 threads, groups all rows at once.

    python -m benchmarks.contenders.pyarrow_loop all DIRECTORY

The bucket is in the environment; the directory is not used.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

_BEGUN = time.perf_counter()

import obstore  # noqa: E402  (these imports are part of its start)
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from benchmarks.contenders.answer import Answer, Groups  # noqa: E402
from state.location import Location  # noqa: E402
from state.objects.object_client import object_client  # noqa: E402

_THREADS = 32


class Loop:
    """Over the prefixes of one bucket."""

    def __init__(self, bucket: str, options: dict[str, str]) -> None:
        self._client = object_client(Location(bucket, options))

    def take_all(self, prefix: str) -> Groups:
        paths = [each["path"] for page in obstore.list(self._client, prefix) for each in page]
        with ThreadPoolExecutor(_THREADS) as threads:
            table = pa.concat_tables(threads.map(self._read, paths))
        grouped = table.group_by("user").aggregate([([], "count_all"), ("amount", "sum")])
        columns = ("user", "count_all", "amount_sum")
        return list(zip(*(grouped.column(name).to_pylist() for name in columns), strict=True))

    def _read(self, path: str) -> pa.Table:
        content = obstore.get(self._client, path).bytes()
        return pq.read_table(pa.BufferReader(memoryview(content)), use_threads=False)


def main() -> None:
    place = json.loads(os.environ["CONTENDER_BUCKET"])
    loop = Loop(place["bucket"], place["options"])
    loop.take_all(place["warm"])
    ready = time.perf_counter()
    groups = loop.take_all(place["cold"])
    Answer(ready - _BEGUN, (time.perf_counter() - ready,), groups).print()


if __name__ == "__main__":
    main()
