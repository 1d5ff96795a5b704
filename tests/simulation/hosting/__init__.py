"""The actors of a simulated run: the shells of `actors.shells`, the materializer's loop, and the world that they see.

    process.py             SimulatedProcess       one attempt after the other
    attempt.py             SimulatedAttempt       follows one coordinator to its stop or failure
    owner_client.py        SimulatedOwnerClient   work on the root for commands, as calls that wait
    simulated_actors.py    SimulatedActors        makes the actors, with the collaborators below
    simulated_runtime.py   SimulatedRuntime       calls, timers and answers as events
    listing.py             SimulatedPages, SimulatedEvents
    reading.py             SimulatedFiles, SimulatedBlocks
    materializer.py        SimulatedMaterializer  turns of `slackwater.running.materializer_loop` as events
    run_client.py          SimulatedRunClient     its calls of the merger and the coordinator

Invariants: an actor that has died calls nothing and hears nothing; only `judge` decides which error shows a bug.
"""
