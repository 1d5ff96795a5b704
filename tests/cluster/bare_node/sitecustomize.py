"""Import hook of a node that has nothing of this project: files below HIDDEN_PATHS do not exist for Python.

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
    # The environment with Python and Ray may be a directory of the project.
    if path.startswith(tuple(os.environ["HIDDEN_PATHS"].split(os.pathsep))) and not path.startswith(sys.prefix):
        return _NothingThere()
    raise ImportError(path)


sys.path_hooks.insert(0, _hidden)
sys.path_importer_cache.clear()
# An editable installation is found without a path.
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in getattr(each, "__module__", "")]
