"""The values that `Pipeline.source` takes."""

from actors.sources.discovery import Listing, Notifications

__all__ = ["Listing", "Notifications"]
