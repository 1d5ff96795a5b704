"""Places: the identity of the locations that a pipeline reads and writes.

    Location ──► Place ──► relation to another Place: equal, above, below, crossing, apart

A location is a text with options, and one directory has many texts: `..`, symbolic links, bind mounts, two spellings of
an endpoint.  A place is the directory or prefix to which the text refers now.  Links and mounts change, so no object
keeps a place for longer than one check.

Invariants:

* Two locations that refer to the same objects have equal places, as far as the machine can see it.  A doubt counts as
  equal: an overlap that is refused in error costs a new name, an overlap that is accepted costs files.
* No request is made to an object store, and a path need not exist.
"""
