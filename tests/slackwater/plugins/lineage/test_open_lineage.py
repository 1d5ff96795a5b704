"""A receiver of lineage that cannot be is refused where it is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from state.errors import SettingsError


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"to": ""}, "give the URL of an endpoint, or the path of a file"),
        ({"to": "s3://lake/lineage.json"}, "give an http(s) URL, or the path of a local file"),
        ({"to": "missing/events.jsonl"}, "give a file in an existing directory"),
        ({"to": "."}, "give a file in an existing directory"),
        ({"to": "http://localhost:5000", "namespace": " "}, "namespace=...) is empty"),
        ({"to": "http://localhost:5000", "every_s": 0}, "every_s=0): give seconds above 0"),
        ({"to": "http://localhost:5000", "every_s": True}, "every_s=True): give seconds above 0"),
    ],
)
def test_what_is_no_receiver_is_refused(
    arguments: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as refused:
        sw.OpenLineage(**arguments)
    assert said in str(refused.value)
