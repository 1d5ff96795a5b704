"""The flow: from names in a bucket to epochs of rows, cut by barriers.

                    barriers (epoch, mutation, list budget)
      Coordinator ──────────────┬─────────────────────────────────────────────┐
          ▲                     ▼                                             │ grants
          │                 ListActor ──► DispatcherActor ──► FetchActor × N ──► MergerActor ──► materializer
          │                 new files     by vnode of path    blocks of rows     one epoch        (its process)
          └── collect(epoch, delta) from every actor, and from the materializer ◄─────────────────────┘

A plain class without Ray, event loop, clock or chance decides: an *executor*.  Messages go in, instructions come out.
A *shell* hosts it, on Ray or in the simulator: it orders messages, performs instructions, and times them.

Invariants:

* An executor seals its epoch, reports it, and only then passes the barrier on; each barrier once.
* A file is marked as seen, and queued by its fetch actor, in one epoch: a crash forgets both or neither.
* A file's offset moves when its rows are emitted, never when they are read.  What was not emitted at a barrier belongs
  to a later epoch.
* A file that replaces is shown in the epoch of its end, behind all rows of that epoch, and of its object no other row
  comes in it.
* The stored rows of a block are durable before the block arrives at the merger, and the two travel together.
* Every edge numbers its messages; the receiver puts them in order.  References travel nested, rows never travel.
* Names are limited by the list budget of each barrier, rows by credit in bytes; barriers by neither.
* Who owns a vnode changes at one barrier.  The owner before hands over what it knows behind it, and the next one takes
  nothing that came behind it before that.
* Epochs are committed strictly in their order, by the coordinator alone.
* Handles belong to one attempt: nothing of an old attempt can write into a new one.

The executors and what they are made of:

    list_executor.py       which names are new           seen_index.py       what was handed on, 25 bytes a name
                                                         known_chunks.py     what need not be looked up again
                                                         listing_pace.py     when to list, within request_budget.py
                                                         held_files.py       what waits to be handed on
                                                         young_files.py      what may still be written
                                                         listing_marks.py    until when all is handed on
                                                         absent_names.py     what is gone, by gone_files.py
    event_watch.py         when to ask a queue           event_feed.py       what it asks to look at
                                                         message_tracker.py  when a message may be deleted
                                                         bucket_event.py     what a message says
    dispatch_executor.py   who reads them                vnode_mapping.py    who owns what
    fetch_executor.py      reading, buffering, emitting  file_queue.py       files and their rows of state
                                                         waiting_files.py    what is next, by reading_order.py
                                                         file_progress.py    one file
                                                         file_reads.py       what is being read, and what is next
                                                         shown_schemas.py    what files show of their source
                                                         read_buffers.py     rows that wait, read_buffer.py: of a source
                                                         replacing_files.py   files that come in place of others
                                                         left_out.py          columns that sources do not have
                                                         row_stager.py       rows that are kept, with their lineage
                                                         fetch_limits.py     its share of them, by token_bucket.py
                                                         handover.py         what goes with vnodes to others
                                                         arrivals.py         what comes with vnodes from others
    merge_executor.py      one epoch's blocks            barrier_aligner.py  no data crosses a barrier
    ledger_corrections.py  what the commit notes of files whose rows were taken out
    barrier_scheduler.py   when a barrier is due         epoch_collector.py  who has collected what
                                                         epoch_times.py      and when
    rescaling.py           who is to own what, step by step
    autoscaler.py          how many fetch actors are needed
    catalog_changes.py     what a declaration may change
    schema_sample.py       what the first files show     merged_schema.py    types that hold those of all of them
    kept_schema.py         the schema that is kept

What they say: `messages.py` (between actors), `reports.py` (to the coordinator), `instructions.py` (to the shell),
`run_state.py` (to whoever runs the pipeline), `edge.py` (both ends of an edge).

The shells: `shells/`, one for each executor, over a `Runtime`.  `hosting/`, which alone imports ray, hosts them as Ray
actors, and has `run_client.py`, `ray_session.py` and `metric_exporter.py` for the process that runs a pipeline.  An
attempt begins with `recovery.py`, on the state in `committed_files.py`; `placement.py` has the nodes of the actors.

Finding files: `object_store.py`, and under it `bucket_listing.py` (`raw_listing.py` for names that obstore does not
take) and `local_listing.py`; `listing_page.py`, `page_reader.py` (pages side by side), `path_filter.py`,
`listing_state.py` (what the store knows of the last one).  A queue of events: `message_queue.py` (SQS;
`queue_errors.py`), asked by `hosting/event_source.py`.

Reading them: `source.py` (what a source is); `object_file.py`, `range_plan.py`, `seekable.py` and `range_cache.py`
(ranges of an object); `readers/` (formats) and `rows.py` (what they yield); `source_reader.py` and `open_file.py` (a
file piece by piece), `file_columns.py` with `path_columns.py` and `metadata_columns.py` (columns that are not in the
content), `safe_types.py` and `conform.py` (types that survive the way to Spark), `ddl.py` (schemas as text).

`store_errors.py` and `read_errors.py` say what is to blame, `error_lines.py` in one line, `settings.py` what can be
set, `logging.py` how logs look and what they never show, `visible_text.py` what a terminal is shown of files' texts.
"""
