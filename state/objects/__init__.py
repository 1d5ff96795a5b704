"""Clients of object stores, and the errors of a store in the classes of `state.errors`.

Every request ends within a known time, and no message contains a secret.

Face: `object_client.object_client`, `storage_error.storage_error`, `store_faults.FailedRequest`.
"""
