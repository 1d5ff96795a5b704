"""The root of the repository, for tests that read its files or start programs in it."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
