"""HTTP over what is published: probes, metrics, exports, live answers, the live page, and actions of a run.

    requests ─▶ listener (limits, time-outs) ─▶ access (host, token) ─▶ routes ─▶ built_files ─▶ make_export
                                                                          └────▶ live_answers

`paths` declares every path. Other packages use `context` and `routes.serve_run` for a run, `listener` and `access` for
a server of their own. A run without a listener loads no web framework, and neither do the processes that
make exports.
"""
