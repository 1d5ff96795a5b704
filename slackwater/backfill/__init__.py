"""Backfill."""
