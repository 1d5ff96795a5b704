"""Tests of the settings with which a Ray rests."""

from __future__ import annotations

import os

import pytest

from actors.fast_start.resting_ray import resting_agent, resting_config

_SCAN = "SCAN_EVENT_DIR_INTERVAL_SECONDS"


def test_a_setting_of_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_event_stats", raising=False)
    assert resting_config()["event_stats"] is False
    monkeypatch.setenv("RAY_event_stats", "1")
    assert "event_stats" not in resting_config()
    monkeypatch.setenv(_SCAN, "3")
    with resting_agent():
        assert os.environ[_SCAN] == "3"
    assert os.environ[_SCAN] == "3"


def test_the_environment_of_the_agent_is_not_that_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_SCAN, raising=False)
    with pytest.raises(ValueError, match="start failed"), resting_agent():
        assert os.environ[_SCAN] == "60"
        raise ValueError("start failed")
    assert _SCAN not in os.environ


@pytest.mark.parametrize("kept", ["metrics_report_interval_ms", "memory_monitor_refresh_ms", "health_check_period_ms"])
def test_detection_and_metrics_keep_their_interval(kept: str) -> None:
    assert kept not in resting_config()
