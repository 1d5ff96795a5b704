"""`python -m slackwater` is the command `slackwater`."""

from __future__ import annotations

from slackwater.cli.app import main

if __name__ == "__main__":
    main()
