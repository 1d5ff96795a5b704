"""Names whose object was gone when it was to be read: they become new again."""

from __future__ import annotations

from collections.abc import Sequence

from actors.files import Vanished
from actors.listing.event_look_up import EventLookUp
from actors.listing.known_names import KnownNames
from actors.names.questions import Asking, FindNames
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

    def take(self, vanished: Sequence[Vanished]) -> Asking[None]:
        """Versions were not there any more; nothing changes if another version was handed on since."""
        own = [each for each in vanished if each.source == self._source]
        if not own:
            return
        keys = [path_fingerprint(self._source, each.path) for each in own]
        known = yield from FindNames(keys).asked()
        for each, key, name in zip(own, keys, known, strict=True):
            if each.is_removed:
                self._set_gone(each, key, name.version)
            else:
                self._forget(each, key, name.version)

    def _forget(self, vanished: Vanished, key: bytes, known: bytes | None) -> None:
        version = vanished.version
        before, times = self._times.get(key, (version, 0))
        times = 1 if before != version else times + 1
        self._times[key] = version, times
        if times < _MOST_TIMES and known == version:
            self._names.seen.forget(key, version)
            self._names.digests.forget()
            self._names.missing.discard([key])
            self._looks.look_again(vanished.path)

    def _set_gone(self, vanished: Vanished, key: bytes, known: bytes | None) -> None:
        """Its rows have left the views: the same version is read again when it is back."""
        if known == vanished.version:
            self._names.seen.set_gone([key])
            self._names.digests.forget()
            self._looks.look_again(vanished.path)
