"""Running a page fails where the page is wrong, and runs all of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slackwater import __version__
from tests.docs.page import blocks, commands
from tests.docs.page_run import PageRun

_GOOD = f"""# A page

```python title="made.py"
value = 3
```

<!-- run:
before = 2
-->

```python
from made import value

print(value * before, "times")
```

```text
6 ...
```

```console
$ slackwater --version
slackwater {__version__}
$ slackwater \\
    --version
```

<!-- exit code: 2 -->
```console
$ slackwater show
```

<!-- not run: it would fail,
and that over two lines -->
```python
raise SystemExit
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "made", raising=False)
    return tmp_path / "page.md"


def test_a_page_runs_in_its_order_with_one_set_of_names(page: Path) -> None:
    page.write_text(_GOOD, encoding="utf-8")
    run = PageRun(page)
    run.run()
    assert run.ran == 5, "hidden code, the block, two command lines, and the one that is wrong"
    assert [block.not_run for block in blocks(page)][-1] == "it would fail, and that over two lines"


@pytest.mark.parametrize(
    ("good", "wrong", "said"),
    [
        ("6 ...", "7 ...", "page.md:18: the page says"),
        (f"slackwater {__version__}\n$", "slackwater 0.0.0\n$", "page.md:22: the page says"),
        ("exit code: 2", "exit code: 0", "slackwater show\nended with 2, not 0"),
        ("before = 2", "before = None", "unsupported operand"),
    ],
)
def test_what_a_page_says_and_is_not_so_fails(page: Path, good: str, wrong: str, said: str) -> None:
    assert good in _GOOD
    page.write_text(_GOOD.replace(good, wrong), encoding="utf-8")
    with pytest.raises(BaseException, match=said.replace("(", r"\(")):
        PageRun(page).run()


def test_a_block_that_nobody_would_see_is_refused(page: Path) -> None:
    page.write_text("* an item\n\n    ```python\n    never = 1\n    ```\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a fence is not closed, or is indented"):
        blocks(page)
    page.write_text("<!-- not run: a reason -->\n\nno block\n", encoding="utf-8")
    with pytest.raises(ValueError, match="stands above no block"):
        blocks(page)


def test_a_command_may_go_over_lines_and_prints_what_stands_behind_it(page: Path) -> None:
    page.write_text("```console\n$ slackwater sql lake \\\n    'SELECT 1'\none\ntwo\n$ ls\n```\n", encoding="utf-8")
    (command,) = commands(blocks(page)[0])
    assert (command.line, command.text, command.output) == (2, "slackwater sql lake  'SELECT 1'", "one\ntwo")
