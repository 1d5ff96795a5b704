"""Catalyst."""
