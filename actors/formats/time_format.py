"""Dates and times in a form other than ISO 8601, read by a format as in `strptime`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from actors.file_errors import UnreadableFile, one_line
from state.errors import SettingsError

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_PARTS = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d{2})",
    "m": r"(?P<m>\d{1,2})",
    "d": r"(?P<d>\d{1,2})",
    "b": r"(?P<b>[A-Za-z]{3})",
    "B": r"(?P<B>[A-Za-z]{3,9})",
    "H": r"(?P<H>\d{1,2})",
    "I": r"(?P<I>\d{1,2})",
    "p": r"(?P<p>[AaPp][Mm])",
    "M": r"(?P<M>\d{1,2})",
    "S": r"(?P<S>\d{1,2})",
    "f": r"(?P<f>\d{1,9})",
    "z": r"(?P<z>Z|[+-]\d{2}:?\d{2})",
}
_OF_A_DAY = ("Y", "y", "m", "b", "B", "d")
# A year of two digits below 69 is in this century, as in POSIX.
_FIRST_YEAR_OF_1900 = 69


@dataclass(frozen=True)
class TimeFormat:
    """A format of dates or times.

    `%Y %y %m %b %B %d %H %I %p %M %S %f %z` and `%%` have the meaning of Python's `strptime`; months have English
    names.  Any other character matches itself.

    Args:
        text: the format.
        pattern: the regular expression of a whole text, with a group for each directive.
        directives: the directives, in order.
    """

    text: str
    pattern: str
    directives: tuple[str, ...]

    @classmethod
    def of_date(cls, option: str, text: object) -> TimeFormat:
        """The format of a date.

        Args:
            option: the name of the option, for the message.

        Raises:
            SettingsError: it is not one.
        """
        made = cls._of(option, text)
        if extra := [each for each in made.directives if each not in _OF_A_DAY]:
            raise SettingsError(f"{option}={text!r}): a date has no %{extra[0]}; give a timestamp_format")
        return made

    @classmethod
    def of_time(cls, option: str, text: object) -> TimeFormat:
        """The format of a date with a time.  Errors as `of_date`."""
        made = cls._of(option, text)
        if "I" in made.directives and "p" not in made.directives:
            raise SettingsError(f"{option}={text!r}): an hour by %I needs %p")
        if "p" in made.directives and "I" not in made.directives:
            raise SettingsError(f"{option}={text!r}): %p needs an hour by %I")
        if not {"H", "I"} & {*made.directives}:
            raise SettingsError(f"{option}={text!r}): a time needs an hour, %H or %I; give a date_format for dates")
        return made

    @classmethod
    def _of(cls, option: str, text: object) -> TimeFormat:
        if not isinstance(text, str) or "%" not in text:
            raise SettingsError(f"{option}={text!r}): give a format with directives, such as '%d.%m.%Y'")
        pattern, directives = "", []
        for part in re.findall(r"%.?|[^%]+", text, re.DOTALL):
            if part == "%%":
                pattern += "%"
            elif part[0] != "%":
                pattern += re.escape(part)
            elif part[1:] not in _PARTS:
                known = " ".join(f"%{each}" for each in _PARTS)
                raise SettingsError(f"{option}={text!r}): {part} is not supported; the directives are {known}")
            else:
                pattern += _PARTS[part[1:]]
                directives.append(part[1:])
        for kinds in ("Yy", "mbB", "d"):
            if sum(directives.count(kind) for kind in kinds) != 1:
                named = " or ".join(f"%{kind}" for kind in kinds)
                raise SettingsError(f"{option}={text!r}): give {named} once")
        if twice := [each for each in directives if directives.count(each) > 1]:
            raise SettingsError(f"{option}={text!r}): give %{twice[0]} once")
        if {"H", "I"} <= {*directives}:
            raise SettingsError(f"{option}={text!r}): give %H or %I once")
        return cls(text, f"^{pattern}$", tuple(directives))

    @property
    def has_zone(self) -> bool:
        """True if the times have a zone."""
        return "z" in self.directives

    def matches(self, texts: pa.Array | pa.ChunkedArray) -> bool:
        """True if every text has this form; the values themselves may be wrong."""
        return bool(pc.all(pc.match_substring_regex(texts, self.pattern), min_count=0).as_py())

    def iso(self, texts: pa.Array) -> pa.Array:
        """The texts in the form of ISO 8601, with a zone if they have one.

        Raises:
            UnreadableFile: a text has another form.
        """
        parts = pc.extract_regex(pc.utf8_trim_whitespace(texts), self.pattern)
        if parts.null_count > texts.null_count:
            wrong = texts.filter(pc.and_(parts.is_null(), texts.is_valid()))[0].as_py()
            raise UnreadableFile(f"{one_line(wrong, 80)!r} is not a text of the form {self.text!r}")
        found = dict(zip(self.directives, parts.flatten(), strict=True))
        day = pc.binary_join_element_wise(self._year(found), self._month(found), _padded(found["d"]), "-")
        if not {"H", "I"} & found.keys():
            return day
        zero = pa.scalar("00")
        minute, second = (_padded(found[each]) if each in found else zero for each in "MS")
        time = pc.binary_join_element_wise(self._hour(found), minute, second, ":")
        if "f" in found:
            time = pc.binary_join_element_wise(time, found["f"], ".")
        result = pc.binary_join_element_wise(day, time, " ")
        return pc.binary_join_element_wise(result, found["z"], "") if "z" in found else result

    def _year(self, found: dict[str, pa.Array]) -> pa.Array:
        if "Y" in found:
            return found["Y"]
        early = pc.less(found["y"], f"{_FIRST_YEAR_OF_1900:02}")
        return pc.binary_join_element_wise(pc.if_else(early, "20", "19"), found["y"], "")

    def _month(self, found: dict[str, pa.Array]) -> pa.Array:
        if "m" in found:
            return _padded(found["m"])
        is_short = "b" in found
        names = self._short_names if is_short else self._names
        number = pc.index_in(pc.ascii_lower(found["b" if is_short else "B"]), names)
        return _padded(pc.add(number, 1).cast(pa.string()).fill_null("00"))

    def _hour(self, found: dict[str, pa.Array]) -> pa.Array:
        if "H" in found:
            return _padded(found["H"])
        hour = found["I"].cast(pa.int32())
        is_valid = pc.and_(pc.greater(hour, 0), pc.less_equal(hour, 12))
        hour = pc.if_else(pc.equal(hour, 12), 0, hour)
        hour = pc.add(hour, pc.if_else(pc.equal(pc.ascii_lower(found["p"]), "pm"), 12, 0))
        # Hour 99 is invalid: the cast refuses it.
        return _padded(pc.if_else(is_valid, hour, 99).cast(pa.string()))

    @cached_property
    def _names(self) -> pa.Array:
        return pa.array([month.lower() for month in _MONTHS])

    @cached_property
    def _short_names(self) -> pa.Array:
        return pa.array([month[:3].lower() for month in _MONTHS])


def _padded(texts: pa.Array) -> pa.Array:
    return pc.utf8_lpad(texts, 2, "0")
