"""A look at a few files of a source before a pipeline reads all of them.

`sample` has the first bytes of a file, and `found_format` and `csv_format` judge them.  `proposal` proposes the sources
below a URL for `slackwater init`; `likely_mistakes` compares a declaration with its files for the dry run.
"""
