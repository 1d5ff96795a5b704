"""Stories: scenarios in steps, written by hand or drawn from a seed.

    Scenario (settings and story) ◄── steps (file, BARRIER, CRASH, ...) ◄── random_story(seed)
                                         ◄── contended_story, commanded_story, branched_story,
                                              changed_story, merged_story, idle_story

Invariants: a story is a value that a failing seed prints as a literal; its end waits until the faults are over.  A
scenario refuses settings and steps that exclude each other.

Face: `Scenario`, the steps, `random_story`.
"""
