"""What Python imports first on a node that has nothing of this project: whatever is below HIDDEN_PATHS is not there.

Nodes that share a machine with the driver would find its files otherwise.
"""

from __future__ import annotations

import os
import sys


class _NothingThere:
    def find_spec(self, name: str, target: object = None) -> None:
        return None

    def invalidate_caches(self) -> None: ...


def _hidden(path: str) -> _NothingThere:
    if path.startswith(tuple(os.environ["HIDDEN_PATHS"].split(os.pathsep))):
        return _NothingThere()
    raise ImportError(path)


sys.path_hooks.insert(0, _hidden)
sys.path_importer_cache.clear()
# An editable installation is found without a path.
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in getattr(each, "__module__", "")]
