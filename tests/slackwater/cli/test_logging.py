"""Logs: one line per event on stderr, with its context and without secrets."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from actors.telemetry.logging import configure, redact
from state.errors import SettingsError
from state.location import SECRET_OPTIONS

EPOCH = 116_000_000_000_000_001
_PROGRAM = """
import structlog
from actors.telemetry.logging import configure
configure({level!r}, json=True)
log = structlog.get_logger().bind(actor="fetch-0", epoch={epoch})
log.debug("quiet")
log.info("read", path="s3://u:hunter2@raw/a.csv", storage_options={{"Secret_Access_Key": "hunter2", "region": "x"}})
try:
    raise ValueError("token=hunter2 was refused")
except ValueError:
    log.exception("failed")
"""


def _lines(level: str) -> list[dict[str, Any]]:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(level=level, epoch=EPOCH)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "" and "hunter2" not in ended.stderr
    return [json.loads(line) for line in ended.stderr.splitlines()]


def test_json_logs_carry_actor_and_epoch_and_no_secret() -> None:
    read, failed = _lines("info")
    assert (read["event"], read["actor"], read["epoch"], read["level"]) == ("read", "fetch-0", str(EPOCH), "info"), (
        "a JSON number loses it"
    )
    assert read["path"] == "s3://***@raw/a.csv"
    assert read["storage_options"] == {"Secret_Access_Key": "***", "region": "x"}
    assert "token=***" in failed["exception"]


def test_lines_for_people_have_no_control_character_of_a_name() -> None:
    program = (
        _PROGRAM.format(level="info", epoch=EPOCH)
        .replace("json=True", "json=False")
        .replace("a.csv", "a\\x1b[2J\\nb.csv")
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert r"a\x1b[2J\nb.csv" in ended.stderr and "\x1b" not in ended.stderr
    assert "\nTraceback" in ended.stderr, "a traceback keeps its lines"


@pytest.mark.parametrize(("level", "events"), [("debug", 3), ("info", 2), ("error", 1)])
def test_level_is_obeyed(level: str, events: int) -> None:
    assert len(_lines(level)) == events


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(SettingsError, match="chatty"):
        configure("chatty")


@pytest.mark.parametrize("name", sorted(SECRET_OPTIONS))
def test_every_secret_option_is_masked_as_key_and_in_text(name: str) -> None:
    assert redact({name: "hunter2", name.upper(): "hunter2"}) == {name: "***", name.upper(): "***"}
    for text in (
        f"{name}=hunter2",
        f"{{'{name}': 'hunter2'}}",
        f'{{"{name}": "hunter2"}}',
        f"AWS_{name.upper()}=hunter2",
    ):
        assert "hunter2" not in redact(text)
