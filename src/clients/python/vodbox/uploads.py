"""Resumable uploads.

Parts are sent one after another. The server knows which parts are complete, so that an interrupted upload sends only
the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Optional, Union, cast

from .errors import NotFoundError, VodboxError
from .parameters import FileRange, new_idempotency_key

if TYPE_CHECKING:
    from .client import Client
    from .models import CompleteMultipartUploadResponse, InitiatedMultipart, Upload

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[int, int], None]

# A part survives the restart of a server.
_PART_RETRIES = 8


class UploadState:
    """What an interrupted upload needs to resume, in memory and optionally in a file.

    The key for the request that creates the upload is stored before the request is sent: a repeat after a crash
    returns the same upload.
    """

    def __init__(self, path: Optional[Path], fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self.upload_id: Optional[int] = None
        self.key = new_idempotency_key()
        stored = self._read()
        if stored.get("fingerprint") == fingerprint and isinstance(stored.get("key"), str):
            self.key = stored["key"]
            upload_id = stored.get("upload_id")
            self.upload_id = upload_id if isinstance(upload_id, int) else None

    def _read(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            with open(self._path, encoding="utf-8") as file:
                stored = json.loads(file.read(65_536) or "{}")
        except (FileNotFoundError, ValueError):
            return {}
        return stored if isinstance(stored, dict) else {}

    def restart(self) -> None:
        """Forget the upload, because it cannot be resumed."""
        self.key = new_idempotency_key()
        self.upload_id = None

    def save(self) -> None:
        """Replace the file atomically, and sync it."""
        if self._path is None:
            return
        path = os.fspath(self._path)
        temporary = f"{path}.{os.getpid()}.tmp"
        text = json.dumps({"fingerprint": self._fingerprint, "key": self.key, "upload_id": self.upload_id})
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def delete(self) -> None:
        if self._path is not None and os.path.exists(self._path):
            os.unlink(self._path)


def fingerprint_of(base_url: str, fields: Mapping[str, Any], modified_ns: Optional[int]) -> str:
    """Identifies the file and the request: a changed file or title is another upload."""
    text = json.dumps([base_url, fields, modified_ns], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class MultipartUpload:
    """Sends one file. The request that completes it returns the same when it is repeated."""

    def __init__(self, client: Client, file: BinaryIO, size: int, on_progress: Optional[Progress]) -> None:
        self._client = client
        self._file = file
        self._size = size
        self._on_progress = on_progress

    def run(self, fields: Mapping[str, Any], state: UploadState) -> int:
        """Upload the file, or what is missing of it. Returns the id of the asset."""
        # A repeated request may return an upload that has expired since.
        upload = self._resumed(state) or self._initiated(fields, state) or self._initiated(fields, state)
        if upload is None:
            raise VodboxError("The upload ended before its bytes were sent.", code="upload_conflict")
        if upload["status"] != "completed":
            done = {part["part_number"]: part["etag"] for part in upload.get("parts", [])}
            for number in range(1, upload["part_count"] + 1):
                if number not in done:
                    done[number] = self._send_part(upload["id"], number, upload["part_size"])
                self._report(min(number * upload["part_size"], self._size))
            self._complete(upload["id"], done)
        self._report(self._size)
        return upload["asset_id"]

    def _initiated(self, fields: Mapping[str, Any], state: UploadState) -> Optional[Upload]:
        state.save()
        answer = cast(
            "InitiatedMultipart",
            self._client.request("POST", "/api/v1/uploads/initiate_multipart", json=fields, idempotency_key=state.key),
        )
        state.upload_id = answer["id"]
        state.save()
        # The response to a repeated request lacks the parts that were sent since.
        return self._resumed(state)

    def _resumed(self, state: UploadState) -> Optional[Upload]:
        if state.upload_id is None:
            return None
        try:
            upload = self._client.get_upload(state.upload_id)
        except NotFoundError:
            upload = None
        if upload is not None and upload["status"] in ("pending", "completed"):
            return upload
        state.restart()
        return None

    def _send_part(self, upload_id: int, number: int, part_size: int) -> str:
        signed = self._client.sign_upload_part(upload_id, part_number=number)
        start = (number - 1) * part_size
        length = min(part_size, self._size - start)
        body = FileRange(self._file, start, length, lambda position: self._report(start + position))
        response = self._client.transport.send(
            signed["method"],
            signed["url"],
            # Without the API key: the URL is the credential, and may be one of another host.
            headers={**signed["headers"], "Content-Length": str(body.length)},
            content=body,
            max_retries=_PART_RETRIES,
        )
        etag: Optional[str] = response.headers.get("etag")
        if not etag:
            raise VodboxError("The storage returned no ETag for a part.", code="etag_missing")
        return etag

    def _complete(self, upload_id: int, etags: Mapping[int, str]) -> CompleteMultipartUploadResponse:
        parts = [{"part_number": number, "etag": etags[number]} for number in sorted(etags)]
        answer = self._client.request(
            "POST",
            f"/api/v1/uploads/{upload_id}/complete_multipart",
            json={"parts": parts, "bytes_received": self._size},
            is_repeatable=True,
        )
        return cast("CompleteMultipartUploadResponse", answer)

    def _report(self, position: int) -> None:
        if self._on_progress is not None:
            self._on_progress(position, self._size)
