"""Ingested files of a source: a check for changes, and their content."""

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
_SAID = {"deleted": "is deleted", "changed": "has changed since its rows were ingested"}


class FileProblemsError(Exception):
    """Some files have changed or are deleted since their rows were ingested."""

    def __init__(self, problems: tuple[FileProblem, ...]) -> None:
        shown = ", ".join(f"{each.path} {_SAID[each.problem]}" for each in problems[:_SHOWN])
        more = f", and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
        super().__init__(f"{shown}{more}; restore the ingested files, or verify an earlier epoch")
        self.problems = problems


class IngestedFiles:
    """The ingested files of one source; no other file of it is read.

    Args:
        source: the source with its files at one epoch.
        on_file: called with the number of finished files.
    """

    def __init__(self, source: RecordedSource, on_file: Callable[[int], None] = lambda done: None) -> None:
        self.source = source
        self._store = ObjectStore(source.definition.location)
        self._on_file = on_file

    def check(self) -> None:
        """Compares the versions in the bucket with the recorded ones, by one listing; no file is read.

        Equal etags mean equal content, at any time of writing; times count only in a store without etags.

        Raises:
            FileProblemsError: some files have changed or are deleted; it names all of them.
            StorageError: the bucket cannot be listed.
        """
        if not self.source.files:
            return
        wanted = {each.file.path: each.file for each in self.source.files}
        # If two versions of a path were ingested, the first one is lost.
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
        problems.update(dict.fromkeys(missing, "deleted"))
        if problems:
            raise FileProblemsError(tuple(self._problem(path, problems[path]) for path in sorted(problems)))

    def __iter__(self) -> Iterator[tuple[IngestedFile, ObjectFile]]:
        """Yields the files in their order, and prefetches the first block of the next few.

        Raises:
            StorageError: the bucket cannot be opened.  Reading a content raises the errors of `ObjectFile`.
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
