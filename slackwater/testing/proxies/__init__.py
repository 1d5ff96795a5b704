"""Proxies in front of a server: a log of its requests, and faults by script or by chance.

    client ──► ReverseProxy ──Exchange──► server        subclasses: RequestLog, FaultProxy,
                                                   FaithlessProxy

Invariants: the Host header, which S3 signs, is unchanged; a proxy listens on loopback.

Face: `RequestLog`, `FaultProxy`, `FaithlessProxy`.
"""
