"""Names whose object was gone when it was to be read: they become new again."""

from __future__ import annotations

from actors.files import Vanished
from actors.listing.event_look_up import EventLookUp
from actors.listing.known_names import KnownNames
from state.tables.fingerprint import path_fingerprint

_MOST_TIMES = 5


class VanishedNames:
    """Forgets vanished names in the index, so that they are found when they are back.

    An object that is listed again and again and is never there has a name that cannot be read, like one that ends in
    `/`.  It is forgotten four times in the same version, and then stays seen.

    Args:
        source: the name of the source.
        names: the names of the source.
        looks: looks at single objects, if events may wait for one of the names.
    """

    def __init__(self, source: str, names: KnownNames, looks: EventLookUp) -> None:
        self._source, self._names, self._looks = source, names, looks
        # Fingerprint of the name → its last version, and the number of times that this one vanished.
        self._times: dict[bytes, tuple[bytes, int]] = {}

    def on_vanished(self, vanished: Vanished) -> None:
        """A version was not there any more; nothing changes if another version was handed on since."""
        if vanished.source != self._source:
            return
        key, version = path_fingerprint(self._source, vanished.path), vanished.version
        if vanished.is_removed:
            self._set_gone(vanished.path, key, version)
            return
        before, times = self._times.get(key, (version, 0))
        times = 1 if before != version else times + 1
        self._times[key] = version, times
        if times < _MOST_TIMES and self._names.seen.forget(key, version):
            self._names.digests.forget()
            self._names.missing.discard([key])
            self._looks.look_again(vanished.path)

    def _set_gone(self, path: str, key: bytes, version: bytes) -> None:
        """Its rows have left the views: the same version is read again when it is back."""
        if self._names.seen.lookup([key]) == [version]:
            self._names.seen.set_gone([key])
            self._names.digests.forget()
            self._looks.look_again(path)
