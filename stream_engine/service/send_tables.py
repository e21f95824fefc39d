"""Tables of a published snapshot to where others keep them, by `python -m` this module `STATE N`.

What goes where comes on standard input, as JSON: {"tables": {table: uri}, "kafka": {option: value}}, so that no command
line shows a password. What a table holds is read from where it is kept, and only what differs is written: nothing needs
remembering, and a process that was killed leaves no trace. A process of its own keeps the run's memory and interpreter
free. Ends with 0 and a line of JSON, or with 1 and a line for people.
"""

import json
import sys
from typing import Any

from connectors import TABLES, SinkUnavailable, UnusableSource, resolve, split_uri
from stream_engine.exports import NothingToExport
from stream_engine.exports.files import NoSuchTable, rows
from stream_engine.state.published import Published
from stream_engine.state.store import NoSuchSnapshot, Store


def send_table(published: Published, table: str, uri: str, options: dict[str, Any]) -> dict[str, int]:
    """Make what is kept at `uri` the rows of this table.

    Returns
    -------
    dict
        How many rows there are, and how many were written and removed.

    Raises
    ------
    NothingToExport, NoSuchTable, SinkUnavailable, UnusableSource
    """
    wanted = rows(published, table)
    scheme, rest = split_uri(uri)
    kept = resolve(scheme, TABLES)(rest, options)
    try:
        kept.open()
        held = kept.rows()
        changed: dict[bytes, bytes | None] = {key: row for key, row in wanted.items() if held.get(key) != row}
        gone: dict[bytes, bytes | None] = dict.fromkeys(held.keys() - wanted.keys())
        if changed or gone:
            snapshot = published.snapshot
            kept.change(changed | gone, {"snapshot": str(snapshot.sequence), "digest": snapshot.digest})
    finally:
        kept.close()
    return {"rows": len(wanted), "written": len(changed), "removed": len(gone)}


def main(state: str, sequence: str) -> int:
    """Send every table; returns the exit status."""
    asked = json.load(sys.stdin)
    try:
        published = Store(state).published(sequence)
    except NoSuchSnapshot as error:
        print(error)
        return 1
    sent: dict[str, Any] = {}
    for table, uri in asked["tables"].items():
        try:
            sent[table] = send_table(published, table, uri, asked["kafka"])
        except NothingToExport:
            sent[table] = {"rows": 0, "written": 0, "removed": 0}  # a refit makes it later
        except (NoSuchTable, SinkUnavailable, UnusableSource) as error:
            print(" ".join(str(error).split()))
            return 1
    print(json.dumps(sent))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
