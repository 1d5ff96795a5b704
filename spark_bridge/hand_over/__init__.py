"""Hand_over."""
