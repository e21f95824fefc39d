"""A schema registry for the tests: the part of Confluent's REST API that is documented for producers and consumers.

It is no product: none could be had from the package registries that the suite uses. Schemas get ids from 1 on; `away`
and `slow` make it fail as a real one does.
"""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SchemaRegistry:
    """Serves on a port of its own until `close`. `password`: of the user "engine", without which nobody is let in."""

    def __init__(self, port: int = 0, password: str | None = None):
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.away, self.slow = 0, 0.0  # the status that everything is answered with; seconds until an answer
        self._wanted = password and "Basic " + base64.b64encode(f"engine:{password}".encode()).decode()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                time.sleep(registry.slow)
                registry.asked.append(self.path)
                if registry._wanted and self.headers.get("Authorization") != registry._wanted:
                    self.answer(401, {"error_code": 401, "message": "Unauthorized"})
                elif registry.away:
                    self.answer(registry.away, {"error_code": registry.away})
                else:
                    self.answer(*registry.answer(self.path))

            def answer(self, status, content):
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        words = path.strip("/").split("/")
        if words[:2] == ["schemas", "ids"] and 0 < int(words[2]) <= len(self.schemas):
            return 200, self.schemas[int(words[2]) - 1]
        if words[0] == "subjects" and words[1] in self.subjects:
            number = self.subjects[words[1]][int(words[3]) - 1]
            return 200, {"subject": words[1], "id": number, "version": int(words[3]), **self.schemas[number - 1]}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def add(self, schema: Any, kind: str = "AVRO", subject: str = "t-value", references: Any = None) -> int:
        """Register a schema; its id."""
        entry: dict[str, Any] = {"schema": json.dumps(schema)}
        if kind != "AVRO":  # the default is left out, as Confluent's does
            entry["schemaType"] = kind
        if references:
            entry["references"] = references
        self.schemas.append(entry)
        self.subjects.setdefault(subject, []).append(len(self.schemas))
        return len(self.schemas)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def framed(number: int, payload: bytes) -> bytes:
    """A message of the wire format."""
    return b"\0" + number.to_bytes(4, "big") + payload
