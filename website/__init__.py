"""Build of the documentation's site: `python -m mkdocs build --strict`, with the parts that are made from the code.

    docs/**.md ──► pages ──► mkdocs, with mkdocstrings for the names of the packages ──► build/site
    the command `slackwater` ──► command_page.py ──┘ (in place of a marker in `docs/reference/command.md`)
    files of the repository that a page links to ──► source_pages.py ──┘ (a page each, with its tests as headings)

Invariants:

* Every page reads well in the repository, too: generated parts stand behind a marker or a link to a file.
* Descriptions of the code are made from the code, and cannot be stale.
* A link that leads nowhere, or a page that no navigation leads to, fails the build.

    hooks.py         the events of mkdocs
    navigation.py    `guide/*.md` in the navigation: every page of a folder that it does not name elsewhere
    command_page.py  the options of every command, as typer knows them
    source_pages.py  files of the repository as pages, and links to them
"""
