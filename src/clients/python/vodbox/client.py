"""The client of the API."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Optional, Union
from urllib.parse import parse_qs, urlsplit

import httpx

from .errors import AssetFailed, VodboxError
from .models import Asset
from .operations import Operations
from .pagination import Page
from .parameters import given, query_of
from .transport import Transport
from .uploads import MultipartUpload, Path, Progress, UploadState, fingerprint_of

_LONGEST_POLL_SECONDS = 10.0


class Client(Operations):
    """A client of one server. Threads may share it; each has its connection.

    `base_url` is the URL of the server, such as `https://video.example.com`. Give the credential that the calls need:
    the API key of a tenant, or the token of an operator, a worker, a live gateway or a batch upload. With several, an
    operation uses the first one that it accepts, an API key before an operator's token.

    `timeout` is in seconds, for each wait for the network. `max_retries` is the number of repeats of a request that is
    safe to repeat, after connection errors and the statuses 429, 502, 503 and 504; `Retry-After` is respected up to a
    minute. `http` replaces the HTTP client, for proxies, certificates and tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: Optional[str] = None,
        admin_token: Optional[str] = None,
        worker_token: Optional[str] = None,
        live_token: Optional[str] = None,
        batch_token: Optional[str] = None,
        timeout: float = 60.0,
        max_retries: int = 3,
        http: Optional[httpx.Client] = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        tokens = {
            "apiKey": api_key,
            "adminToken": admin_token,
            "workerToken": worker_token,
            "gatewayToken": live_token,
            "batchToken": batch_token,
        }
        self._tokens = {scheme: token for scheme, token in tokens.items() if token}
        self.transport = Transport(http or httpx.Client(timeout=timeout), max_retries)

    def close(self) -> None:
        """Close all connections."""
        self.transport.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        auth: Sequence[Sequence[str]] = (("apiKey",), ("adminToken",)),
        tokens: Mapping[str, str] = {},
        query: Mapping[str, Any] = {},
        headers: Mapping[str, str] = {},
        idempotency_key: Optional[str] = None,
        body_headers: Mapping[str, str] = {},
        is_repeatable: Optional[bool] = None,
        returns_text: bool = False,
        **body: Any,
    ) -> Any:
        """Send any request with the credential of this client, and return its JSON, or None without a body.

        With `returns_text` a response that is not JSON is returned as text.
        """
        keyed = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        response = self._send(
            method,
            path,
            auth=auth,
            tokens=tokens,
            query=query,
            headers={**body_headers, **headers, **keyed},
            is_repeatable=is_repeatable,
            **body,
        )
        if response.status_code == 204 or not response.content:
            return None
        return response.text if returns_text and not _is_json(response) else _json(response)

    def _page(self, path: str, query: Mapping[str, Any], cursor: Optional[str], **options: Any) -> Page[Any]:
        response = self._send("GET", path, query={**query, "cursor": cursor}, **options)
        page: Page[Any] = Page(_json(response))
        following = response.links.get("next", {}).get("url", "")
        # Only its cursor is used: the request, with its credential, always goes to this server.
        page.next_cursor = next(iter(parse_qs(urlsplit(following).query).get("cursor", [])), None)
        return page

    def _send(
        self,
        method: str,
        path: str,
        *,
        auth: Sequence[Sequence[str]],
        tokens: Mapping[str, str] = {},
        query: Mapping[str, Any],
        headers: Mapping[str, str] = {},
        **options: Any,
    ) -> httpx.Response:
        available = {**self._tokens, **tokens}
        schemes = next((each for each in auth if all(scheme in available for scheme in each)), ())
        credentials = {self.security_headers[scheme]: available[scheme] for scheme in schemes}
        return self.transport.send(
            method,
            f"{self.base_url}{path}",
            headers={**credentials, **headers},
            params=query_of(query),
            **options,
        )

    def upload(
        self,
        file: Union[Path, BinaryIO],
        *,
        filename: Optional[str] = None,
        on_progress: Optional[Progress] = None,
        resume_file: Optional[Path] = None,
        wait_until_ready: bool = False,
        wait_timeout: Optional[float] = None,
        **fields: Any,
    ) -> Asset:
        """Upload a video and return its asset.

        `file` is a path, or a file that is open for reading bytes and can seek. Memory use does not depend on its
        size. Other keywords are the fields of `initiate_multipart_upload`, such as `title`, `description`, `tags`,
        `collection_id`, `external_id`, `playback_policy`, `captions`.

        `on_progress(sent, total)` is called with numbers of bytes; `sent` decreases when a part is sent again. After an
        interruption, even `kill -9`, the same call with the same `resume_file` sends only the parts that are missing.
        That file is small, is private to one upload, and is deleted at the end. A changed file starts a new upload.

        With `wait_until_ready` it returns when the video can be played: see `wait_until_ready`.
        """
        if isinstance(file, (str, os.PathLike)):
            with open(file, "rb") as opened:
                return self.upload(
                    opened,
                    filename=filename or os.path.basename(os.fspath(file)),
                    on_progress=on_progress,
                    resume_file=resume_file,
                    wait_until_ready=wait_until_ready,
                    wait_timeout=wait_timeout,
                    **fields,
                )
        allowed = inspect.signature(self.initiate_multipart_upload).parameters.keys() - {"idempotency_key", "bytes_expected"}
        # The server ignores unknown fields.
        unknown = fields.keys() - allowed
        if unknown:
            raise TypeError(f"upload() has no argument {min(unknown)}")
        size = file.seek(0, os.SEEK_END)
        name = filename or os.path.basename(str(getattr(file, "name", ""))) or "video"
        body = {**given(fields), "filename": name, "bytes_expected": size}
        state = UploadState(resume_file, fingerprint_of(self.base_url, body, _modified_ns(file)))
        asset_id = MultipartUpload(self, file, size, on_progress).run(body, state)
        try:
            asset = self.wait_until_ready(asset_id, timeout=wait_timeout) if wait_until_ready else self.get_asset(asset_id)
        except AssetFailed:
            state.delete()
            raise
        state.delete()
        return asset

    def wait_until_ready(self, asset_id: int, *, timeout: Optional[float] = None) -> Asset:
        """Poll an asset until it can be played, and return it.

        Raises AssetFailed when it cannot, and TimeoutError after `timeout` seconds; by default it waits without limit.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        wait = 0.5
        while True:
            asset = self.get_asset(asset_id)
            if asset["playback_status"] == "ready":
                return asset
            if asset["playback_status"] == "errored":
                fault = asset["error"] or {"code": "asset_errored", "message": "The video cannot be played."}
                raise AssetFailed(fault["message"], code=fault["code"])
            if deadline is not None and time.monotonic() + wait > deadline:
                raise TimeoutError(f"Asset {asset_id} is {asset['playback_status']} after {timeout} seconds.")
            time.sleep(wait)
            wait = min(_LONGEST_POLL_SECONDS, wait * 1.5)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        # A proxy or another server.
        kind = response.headers.get("content-type", "no media type")
        message = f"The response is not JSON, but {kind}; is the base URL that of vodbox?"
        raise VodboxError(message, code="invalid_response", status=response.status_code) from error


def _is_json(response: httpx.Response) -> bool:
    kind: str = response.headers.get("content-type", "").split(";")[0].strip()
    return kind == "application/json" or kind.endswith("+json")


def _modified_ns(file: BinaryIO) -> Optional[int]:
    try:
        return os.fstat(file.fileno()).st_mtime_ns
    except (AttributeError, OSError):
        return None
