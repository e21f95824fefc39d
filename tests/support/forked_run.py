"""`stream-engine run` of a test, whose own processes (refits, and exports over HTTP) are forked from it as it begins:
all that they import is there. `forked_commands.Forked` runs it in place of `stream_engine`.
"""

import os
import runpy
import signal
import socket
import sys

from stream_engine.__main__ import main
from stream_engine.service import forked_commands, refit_workers
from stream_engine.service.http import built_files
from tests.support import forked_commands as of_tests


class Beside(forked_commands.ForkServer):
    """Forked from this process, before it has threads; a new one, where that one was killed, is started."""

    def __init__(self) -> None:
        super().__init__(of_tests.IMPORTED)
        self._connection, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment, self._forked = dict(os.environ), os.fork()
        if not self._forked:
            self._connection.close()
            os.setsid()
            runpy.run_module(forked_commands._next_command(there), run_name="__main__", alter_sys=True)
            sys.exit()
        there.close()

    @property
    def pid(self) -> int | None:
        return self._forked or super().pid

    def close(self) -> None:
        if self._forked and self._connection:
            self._connection.close()
            os.kill(self._forked, signal.SIGKILL)
            os.waitpid(self._forked, 0)
            self._forked, self._connection = 0, None
        super().close()


if __name__ == "__main__":
    refit_workers.ORIGIN = Beside()
    of_tests._server = lambda of: refit_workers.ORIGIN
    with of_tests.forking(built_files):
        sys.exit(main())
