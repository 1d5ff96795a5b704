"""Stories: scenarios in steps, written by hand or drawn from a seed.

    Scenario (settings and story) ◄── steps (file, BARRIER, CRASH, ...) ◄── random_story(seed)
        ▲ checks                         ◄── an Addition for each other module, in a share of the stories
    features.py: Feature(requires, excludes)

Invariants: a story is a value that a failing seed prints as a literal; its end waits until the faults are over.  A
feature names the features that it requires and excludes once: a scenario refuses them, and an addition avoids them.

Face: `Scenario`, the steps, `Feature`, `Addition`, `random_story`.
"""
