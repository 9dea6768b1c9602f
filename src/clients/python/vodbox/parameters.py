"""Parameters of requests."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Union
from urllib.parse import quote

from .errors import VodboxError


class NotGiven(enum.Enum):
    """The type of `NOT_GIVEN`, the default of a field that is not sent. None is sent, as null."""

    NOT_GIVEN = enum.auto()

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN = NotGiven.NOT_GIVEN

FileContent = Union[bytes, str, BinaryIO]

_READ_BYTES = 256 * 1024


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that were not given."""
    return {name: value for name, value in fields.items() if value is not NOT_GIVEN}


def segment(value: object) -> str:
    """One segment of a path. Raises ValueError for a value that would change the path."""
    text = str(value)
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is not an id.")
    return quote(text, safe="")


def query_of(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Query parameters without those that are None."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
        if value is not None
    }


def new_idempotency_key() -> str:
    """A key that no other request has."""
    return str(uuid.uuid4())


class FileRange:
    """Bytes of a file, read in small pieces. It can be iterated again, for a retry.

    Raises VodboxError while it is iterated when the file is shorter than expected.
    """

    def __init__(
        self, file: BinaryIO, start: int, length: int, on_read: Callable[[int], None] = lambda position: None
    ) -> None:
        """`on_read` is called after each piece, with the number of bytes read so far."""
        self._file = file
        self._start = start
        self.length = length
        self._on_read = on_read

    def __iter__(self) -> Iterator[bytes]:
        position = 0
        self._file.seek(self._start)
        while position < self.length:
            piece = self._file.read(min(_READ_BYTES, self.length - position))
            if not piece:
                raise VodboxError("The file became shorter while it was read.", code="file_changed")
            yield piece
            position += len(piece)
            self._on_read(position)


def remaining(file: BinaryIO) -> FileRange:
    """What a seekable file has from its current position to its end."""
    start = file.tell()
    return FileRange(file, start, file.seek(0, 2) - start)


def body_of(content: FileContent, content_type: str) -> dict[str, Any]:
    """Options of a request with these bytes."""
    if isinstance(content, str):
        content = content.encode()
    headers = {"Content-Type": content_type}
    if isinstance(content, (bytes, bytearray)):
        return {"content": bytes(content), "body_headers": headers}
    body = remaining(content)
    return {"content": body, "body_headers": {**headers, "Content-Length": str(body.length)}}


def form_of(fields: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    """Options of a request with a multipart form; `files` names the fields that are files."""
    texts: dict[str, str] = {}
    parts: dict[str, Any] = {}
    for name, value in given(fields).items():
        if value is None:
            continue
        if name not in files:
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
            continue
        # Files in forms are small, and a retry needs their bytes again.
        content = value if isinstance(value, (bytes, str)) else value.read()
        parts[name] = (name, content.encode() if isinstance(content, str) else content)
    return {"data": texts, "files": parts}
