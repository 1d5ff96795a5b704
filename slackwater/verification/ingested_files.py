"""The ingested files of a source: whether they are still the same, and their content."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from actors.objects.object_file import ObjectFile
from actors.objects.object_store import ObjectStore
from slackwater.reading.recorded_source import IngestedFile, RecordedSource
from slackwater.verification.verification import FileProblem

_FILES_AHEAD = 8
_SHOWN = 3
_SAID = {"gone": "is gone", "changed": "has changed since its rows were ingested"}


class FileProblemsError(Exception):
    """Files that have changed or are gone since their rows were ingested."""

    def __init__(self, problems: tuple[FileProblem, ...]) -> None:
        shown = ", ".join(f"{each.path} {_SAID[each.problem]}" for each in problems[:_SHOWN])
        more = f", and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
        super().__init__(f"{shown}{more}; restore what was ingested, or verify an epoch before it")
        self.problems = problems


class IngestedFiles:
    """Reads what was ingested of a source, and nothing else.

    Args:
        source: with its files.
        on_file: called with the number of files that are done.
    """

    def __init__(self, source: RecordedSource, on_file: Callable[[int], None] = lambda done: None) -> None:
        self.source = source
        self._store = ObjectStore(source.definition.location)
        self._on_file = on_file

    def check(self) -> None:
        """Compares the versions in the bucket with the recorded ones, by one listing; no file is read.

        The content of an equal etag is the same, whenever it was written: times count only where a store has no etags.

        Raises:
            FileProblemsError: naming all files that are not what they were.
            StorageError: the bucket cannot be listed.
        """
        if not self.source.files:
            return
        wanted = {each.file.path: each.file for each in self.source.files}
        # A path of which two versions were ingested has lost the first.
        lost = [each.file.path for each in self.source.files if wanted[each.file.path] != each.file]
        problems = dict.fromkeys(lost, "changed")
        missing = set(wanted)
        for page in self._store.list_pages():
            for path, etag, size, last_modified in page.objects():
                file = wanted.get(path)
                if file is None:
                    continue
                missing.discard(path)
                if etag != file.etag or size != file.size or (not etag and last_modified != file.last_modified):
                    problems[path] = "changed"
        problems.update(dict.fromkeys(missing, "gone"))
        if problems:
            raise FileProblemsError(tuple(self._problem(path, problems[path]) for path in sorted(problems)))

    def __iter__(self) -> Iterator[tuple[IngestedFile, ObjectFile]]:
        """Yields the files in their order; the first block of the next few is fetched meanwhile.

        Raises:
            StorageError: the bucket cannot be opened.  Reading a content raises what `ObjectFile` says.
        """
        done = 0
        waiting: deque[tuple[IngestedFile, ObjectFile, object]] = deque()
        files = iter(self.source.files)
        with ThreadPoolExecutor(_FILES_AHEAD, thread_name_prefix="verify") as threads:
            while True:
                for each in files:
                    content = self._store.open(each.file)
                    waiting.append((each, content, threads.submit(content.head, 1)))
                    if len(waiting) == _FILES_AHEAD:
                        break
                if not waiting:
                    return
                each, content, _ = waiting.popleft()
                yield each, content
                done += 1
                self._on_file(done)

    def _problem(self, path: str, problem: str) -> FileProblem:
        return FileProblem(f"{self.source.definition.location.url}/{path}", problem)
