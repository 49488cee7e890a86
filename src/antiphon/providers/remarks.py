"""What a body cannot say of its request, told once: demands that an API has no field for, schemas that it cannot keep to."""

from collections.abc import Sequence

from antiphon.providers.dialects import Schemas
from antiphon.types.request import ModelRequest, WarningChunk

__all__ = ["Remarks"]


class Remarks:
    """The remarks on the requests to one model; a remark that was made is not made again."""

    __slots__ = ("_made", "_schemas")

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._made: set[str] = set()

    def on(
        self, request: ModelRequest, *, answers: bool, left_out: Sequence[str] = (), api: str = ""
    ) -> list[WarningChunk]:
        """Warnings for this request. `answers`: its answer's schema is sent. `left_out` are settings without a field."""
        remarks = [WarningChunk("setting_left_out", f"{api} has no {name!r}; it was left out") for name in left_out]
        if any(tool.strict for tool in request.tools):
            remarks += self._on_tools(request)
        schema = request.settings.response_schema
        if answers and schema is not None:
            notes = self._schemas.answer(schema).notes
            remarks += [self._once("schema", f"the schema of the answer: {note}") for note in notes]
        return [remark for remark in remarks if remark.text]

    def _on_tools(self, request: ModelRequest) -> list[WarningChunk]:
        """A tool that was to be held to its schema, and is not, or not to all of it."""
        strict = {tool.name for tool in request.tools if tool.strict}
        notes = self._schemas.notes(request.tools)
        return [
            self._once("schema", f"the schema of tool {name!r}: {note}")
            for name, told in notes.items()
            if name in strict
            for note in told
        ]

    def _once(self, code: str, text: str) -> WarningChunk:
        if text in self._made:
            return WarningChunk(code, "")
        self._made.add(text)
        return WarningChunk(code, text)
