"""Names whose object was deleted when it was to be read: the same version is read when it is listed again."""

from __future__ import annotations

from collections.abc import Sequence

from actors.files import Vanished
from actors.listing.event_look_up import EventLookUp
from actors.listing.known_names import KnownNames
from actors.names.questions import Asking, FindNames
from state.tables.fingerprint import path_fingerprint

_MOST_TIMES = 5


class VanishedNames:
    """Marks vanished names in the index, so that they are found when they are back.

    A name without rows in the views is forgotten.  If the views may have rows of an earlier version, the name is kept:
    these rows are retracted when listings or looks lack the object, as for any deleted file.

    An object that is listed again and again and is never there has a name that cannot be read, like one that ends in
    `/`.  It is read again four times in the same version, and then stays seen.

    Args:
        source: the name of the source.
        names: the names of the source.
        looks: looks at single objects, if events may wait for one of the names.
    """

    def __init__(self, source: str, names: KnownNames, looks: EventLookUp) -> None:
        self._source, self._names, self._looks = source, names, looks
        # Fingerprint of the name → its last version, and the number of times that this one vanished.
        self._times: dict[bytes, tuple[bytes, int]] = {}

    def take(self, vanished: Sequence[Vanished]) -> Asking[None]:
        """Versions were not there any more; nothing changes if another version was handed on since."""
        own = [each for each in vanished if each.source == self._source]
        if not own:
            return
        keys = [path_fingerprint(self._source, each.path) for each in own]
        known = yield from FindNames(keys).asked()
        for each, key, name in zip(own, keys, known, strict=True):
            if each.is_removed:
                self._set_deleted(each, key, name.version)
            elif self._may_return(key, each.version) and name.version == each.version:
                self._take_unread(each, key)

    def _may_return(self, key: bytes, version: bytes) -> bool:
        before, times = self._times.get(key, (version, 0))
        times = 1 if before != version else times + 1
        self._times[key] = version, times
        return times < _MOST_TIMES

    def _take_unread(self, vanished: Vanished, key: bytes) -> None:
        if vanished.replaces:
            self._names.seen.set_unread([key])
        else:
            self._names.seen.forget(key, vanished.version)
            self._names.missing.discard([key])
        self._names.digests.forget()
        self._looks.look_again(vanished.path)

    def _set_deleted(self, vanished: Vanished, key: bytes, known: bytes | None) -> None:
        """Its rows have left the views: the same version is read again when it is back."""
        if known == vanished.version:
            self._names.seen.set_deleted([key])
            self._names.digests.forget()
            self._looks.look_again(vanished.path)
