"""A model server on this machine that answers from a script, as an OpenAI-compatible one does, for tests of the command.

Each request to `/chat/completions` takes the next reply; `/models` lists one model.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = dict[str, Any] | threading.Event
"""A chunk to send, or something to wait for before going on."""


@dataclass
class Reply:
    """What a request is answered with. `cut`: the connection ends without the terminal marker."""

    steps: Sequence[Step] = ()
    status: int = 200
    body: Any = None
    cut: bool = False


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "r", "model": "test", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def said(text: str, *more: Step) -> Reply:
    """Text, a word at a time, and whatever else in between."""
    words = [chunk({"content": word}) for word in text.split(" ")]
    spaced = [word if i == 0 else chunk({"content": " " + text.split(" ")[i]}) for i, word in enumerate(words)]
    return Reply([*spaced, *more, chunk({}, "stop")])


def called(name: str, arguments: dict[str, Any] | str, id_: str = "call_1") -> Reply:
    """One tool call, its arguments in two pieces."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    half = len(text) // 2
    first = {"index": 0, "id": id_, "type": "function", "function": {"name": name, "arguments": text[:half]}}
    second = {"index": 0, "function": {"arguments": text[half:]}}
    return Reply([chunk({"tool_calls": [first]}), chunk({"tool_calls": [second]}), chunk({}, "tool_calls")])


def refused(status: int, message: str) -> Reply:
    return Reply(status=status, body={"error": {"message": message, "code": "refused"}})


@dataclass
class ModelServer:
    """A running server: where it is, what it will say, what it was asked."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list[Reply])
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    models: list[str] = field(default_factory=lambda: ["test"])
    asked: threading.Event = field(default_factory=threading.Event)

    def script(self, *replies: Reply) -> None:
        self.replies.extend(replies)


@contextmanager
def serving() -> Iterator[ModelServer]:
    """A server on a free port of 127.0.0.1 for the time of the block."""
    server = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in server.models]})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            server.requests.append(json.loads(body))
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            server.asked.set()
            if not server.replies:
                self.answer(500, {"error": {"message": "the script of the test has ended", "code": "refused"}})
                return
            reply = server.replies.pop(0)
            if reply.body is not None:
                self.answer(reply.status, reply.body)
            else:
                self.stream(reply)

        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                for step in reply.steps:
                    if isinstance(step, threading.Event):
                        step.wait(20)
                        continue
                    self.wfile.write(b"data: " + json.dumps(step).encode() + b"\n\n")
                    self.wfile.flush()
                if not reply.cut:
                    self.wfile.write(b"data: [DONE]\n\n")
            except OSError:  # the client has left
                pass

        def log_message(self, *args: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - takes the same
            """Nothing: the output belongs to the command."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
