"""Aggregation."""
