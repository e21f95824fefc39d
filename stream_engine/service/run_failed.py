"""How a run says that it cannot go on."""


class RunFailed(RuntimeError):
    """The run cannot go on; what was read up to the last snapshot is kept. One line."""
