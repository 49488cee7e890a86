"""llama.cpp's own server, as xllamacpp carries it, with the built-in model's weights, in a process of its own.

In a process of its own because loading a file holds the interpreter's lock, and because the server that a provider meets
is somebody else's. It ends when its standard input does, so it never outlives the tests.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon.wire.http import HttpLimits, fetch_json

CONTEXT = 2048
GOODBYE = 10.0
"""Seconds that the process has to free its model."""

TEMPLATE = r"""
{%- macro called(name, arguments) -%}
<tool_call>
{"name": "{{ name }}", "arguments": {{ arguments if arguments is string else arguments | tojson }}}
</tool_call>
{%- endmacro -%}
{%- macro turn(role, text) -%}
<start_of_turn>{{ role }}
{{ text }}<end_of_turn>
{% endmacro -%}
{%- if tools -%}
{{ turn('system', 'Functions: ' ~ tools | tojson) }}
{{- turn('user', 'How tall is Ben?') }}{{ turn('assistant', called('get_height', '{"person": "Ben"}')) }}
{{- turn('user', 'Feed the cat of Ann') }}{{ turn('assistant', called('feed', '{"animal": "cat of Ann"}')) }}
{{- turn('user', 'What is the weather in Rome?') }}{{ turn('assistant', called('get_weather', '{"city": "Rome"}')) }}
{%- endif -%}
{%- for message in messages -%}
<start_of_turn>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] -%}{{ called(call.function.name, call.function.arguments) }}{%- endfor -%}
<end_of_turn>
{% endfor -%}
{%- if add_generation_prompt -%}
<start_of_turn>assistant
{% endif -%}
"""
"""The file is a base model's and has no chat template: this one shows it what a call looks like. Turns stand between
tokens of their own, so that the tokens of a reply are found again when it comes back in the next request."""


@dataclass(frozen=True)
class LlamaServer:
    """A server that answers."""

    address: str

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    async def is_busy(self) -> bool:
        """Whether its one slot works on a request (llama.cpp, tools/server/README.md, "GET /slots")."""
        slots: Any = await fetch_json(f"{self.address}/slots", limits=HttpLimits(connect=10.0, total=30.0))
        return any(slot["is_processing"] for slot in slots)


@contextmanager
def llama_server(weights: Path) -> Iterator[LlamaServer]:
    """A server on a free port of 127.0.0.1, from the moment when it answers."""
    command = [sys.executable, __file__, str(weights)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), f"the server did not start; it said {address!r}"
            yield LlamaServer(address)
        finally:
            process.stdin.close()
            try:
                process.wait(GOODBYE)
            except subprocess.TimeoutExpired:
                process.kill()


def serve(weights: str) -> None:
    """What the process does: answer until standard input ends."""
    import xllamacpp

    llama: Any = xllamacpp
    params = llama.CommonParams()
    params.model.path = weights
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.swa_full = (
        True  # the model's window slides: only a whole cache lets the beginning of a prompt be found again
    )
    params.cache_ram_mib = (
        0  # what left the slot must not come back from elsewhere, as if the prefix had stayed the same
    )
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.chat_template = TEMPLATE
    params.use_jinja = True
    params.endpoint_slots = True
    params.ui = False
    params.verbosity = -1
    params.warmup = False
    server = llama.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server  # frees the model and closes the port


if __name__ == "__main__":
    serve(sys.argv[1])
