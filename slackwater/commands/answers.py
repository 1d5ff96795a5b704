"""The answers to commands, in words."""

from __future__ import annotations

from dataclasses import asdict

from state.ownership.command import RescaleCommand, TagCommand, ThrottleCommand
from state.ownership.command_inbox import Answer
from state.upkeep.vacuum import Vacuumed


def retried(files: int) -> Answer:
    """What a `retry` has done."""
    text = f"{_number(files)} in the queue again" if files else "nothing to retry"
    return Answer(True, text, {"files": files})


def _number(files: int) -> str:
    return f"{files:,} {'file is' if files == 1 else 'files are'}"


def cleared(records: int) -> Answer:
    """What a `clear_quarantine` has done."""
    return Answer(
        True, f"{records:,} bad {'record is' if records == 1 else 'records are'} cleared", {"records": records}
    )


def tagged(command: TagCommand) -> Answer:
    """What a `tag` has done."""
    gone = command.epoch is None
    return Answer(True, f"tag {command.name} is gone" if gone else f"epoch {command.epoch} is tagged {command.name}")


def vacuumed(gone: Vacuumed) -> Answer:
    """What a `vacuum` has done."""
    text = f"{gone.versions:,} versions and {gone.datasets:,} datasets are gone, {gone.bytes:,} bytes"
    return Answer(True, text, asdict(gone))


def _fetchers(command: RescaleCommand) -> str:
    if command.fewest < command.most:
        return f"{command.fewest} to {command.most} fetch actors, by how much there is to do"
    return f"{command.fewest} {'fetch actor' if command.fewest == 1 else 'fetch actors'}"


def _limits(command: ThrottleCommand) -> str:
    limits = {"files": command.files_per_second, "bytes": command.bytes_per_second, "rows": command.rows_per_second}
    given = [f"{limit:,g} {what}" for what, limit in limits.items() if limit is not None]
    return f"at most {' and '.join(given)} a second" if given else "not throttled"
