"""`python -m slackwater` is the command `slackwater`."""

from __future__ import annotations

import sys

from slackwater.cli import main

sys.exit(main())
