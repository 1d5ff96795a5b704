"""Servers: real S3, SQS and Ray, each ended with the process that started it.

    S3Server · SqsServer (GuardedServer) · RayCluster ──► GuardedProcess ──► process_guard.py ──► the program

Invariants: loopback only; every port is free before it is taken; the guard ends the server and removes its files as
soon as its owner is gone.

Face: `S3Server`, `SqsServer`, `RayCluster`; `s3_events` makes the events of a bucket.
"""
