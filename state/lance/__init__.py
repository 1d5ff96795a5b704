"""Lance."""
