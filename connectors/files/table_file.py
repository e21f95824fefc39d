"""A file of JSON Lines as a table: {"key": ..., "value": {...}} a row, and its headers; replaced as a whole."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connectors import SinkUnavailable
from connectors.disk import Disk, write_whole


class TableFile:
    """The table kept in the file `rest`. `options` are those of other tables, and not used."""

    def __init__(self, location: str, options: Mapping[str, Any] | None = None):
        self._path = Path(location)

    def open(self) -> None:
        """Nothing: the file is replaced by a rename."""

    def rows(self) -> dict[bytes, bytes]:
        """The rows that the file holds now; none where there is no file. Raises `SinkUnavailable`."""
        return {row["key"].encode(): _text(row["value"]) for row in self._lines().values()}

    def change(self, rows: Mapping[bytes, bytes | None], headers: Mapping[str, str]) -> None:
        """Write the rows that are there and these, without those whose value is None. Raises `SinkUnavailable`."""
        lines = self._lines()
        for key, value in rows.items():
            lines.pop(key, None)
            if value is not None:
                lines[key] = {"key": key.decode(), "value": json.loads(value), **headers}
        text = "".join(f"{json.dumps(lines[key], ensure_ascii=False)}\n" for key in sorted(lines))
        try:
            write_whole(Disk(), self._path, [text.encode()])
        except OSError as error:
            raise SinkUnavailable(f"{self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is open."""

    def _lines(self) -> dict[bytes, dict[str, Any]]:
        try:
            return {row["key"].encode(): row for row in map(json.loads, self._path.read_bytes().splitlines())}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SinkUnavailable(f"{self._path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise SinkUnavailable(f"{self._path}: holds no table of ours ({error}); name another file") from error


def _text(value: Any) -> bytes:
    """A value as rows are compared: sorted keys, no blanks."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
