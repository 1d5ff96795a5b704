"""Places of a pipeline: the locations that it reads and writes, and the pairs of them that may overlap.

    Pipeline: root, sources, published tables, archives ──► DeclaredPlace ──► require_apart ──► SettingsError
                                                                                  │
                                                                      overlap_table.EXCEPTIONS

Places are compared in both directions: equal, above, below.  `overlap_table` is the one list of pairs that may overlap;
the page `docs/guide/places.md` is checked against it.

Invariants:

* A pair without an exception is refused.
* A check resolves links and mounts at that moment: when a pipeline is declared, when a run starts, and before a
  publication writes.

Interface: `declared_place.DeclaredPlace`, `overlap_table.require_apart`, `place_watch.PlaceWatch`,
`pipeline_places.pipeline_places`, `iceberg_location.iceberg_location`; `source_access`, the check of the access to the
sources before a start.
"""
