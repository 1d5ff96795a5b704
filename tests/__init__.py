"""Tests, and the simulator."""
