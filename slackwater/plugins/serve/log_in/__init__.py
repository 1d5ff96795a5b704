"""Connections of the endpoint up to the end of their log-in: sockets, TLS, passwords, limits.

    accepted socket ──► ConnectionSlots ──► ClientConnection ──► ScramExchange ──► session
                         a slot, or the      first message,       LogInPace: time
                         end of another      TLS                  of the verdict

Invariants:

* A connection has a slot from its acceptance to its end.  Sessions are never evicted; other connections are.
* No byte beyond a request for TLS is read before the handshake.
* The text of the password is not stored.

Face: `authentication.Password`, `authentication.ScramExchange`, `tls.tls_context`, `connection_slots.ConnectionSlots`,
`client_connection.ClientConnection`, `log_in_pace.LogInPace`.
"""
