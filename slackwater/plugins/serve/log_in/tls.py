"""TLS by two files: the certificate and its key."""

from __future__ import annotations

import ssl
from pathlib import Path

from state.errors import UsageError


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """The context of the server; None without files.

    Args:
        certificate: the certificate and its chain, in PEM.
        key: its private key, in PEM, without a passphrase.

    Raises:
        UsageError: only one file is given, or a file cannot be used.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-key" if key is None else "--tls-certificate"
        raise UsageError(f"TLS needs two files: {missing} is missing")
    for name, file in (("--tls-certificate", certificate), ("--tls-key", key)):
        try:
            file.read_bytes()
        except OSError as error:
            raise UsageError(f"{name} {file} cannot be read: {error.strerror}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without this function OpenSSL asks the terminal for a passphrase.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise UsageError(
            f"{certificate} and {key} are not a certificate and its key: {reason}; give files in PEM, the key without "
            "a passphrase"
        ) from None
    return context
