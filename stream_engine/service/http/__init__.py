"""HTTP over what is published: probes and metrics, exports, and on a listener of its own what is asked of a run.

    requests ─▶ accepting ─▶ connection (clocks) ─▶ gate (host, token) ─▶ probes, export_routes, admin
                                                                              │
                                              export_cache ◀── make_export ◀──┘ (thread, or a process of its own)

`serving` puts it together; `listener` runs one address in a thread.
"""
