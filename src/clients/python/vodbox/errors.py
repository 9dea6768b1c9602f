"""Errors of this package. All errors of the API are a `VodboxError`."""

from __future__ import annotations

from typing import Any, Optional

import httpx


class VodboxError(Exception):
    """A request failed.

    Match on `code`, which is stable; the message is a sentence for people. `status` is the HTTP status, or None when
    there was no response. `details` has messages by field, and may be empty. `request_id` identifies the request in
    the log of the server. `retry_after` is the wait in seconds that the server asks for, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: Optional[int] = None,
        request_id: Optional[str] = None,
        details: Optional[dict[str, Any]] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.details = details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        parts = [str(self.status)] if self.status is not None else []
        parts.append(self.code)
        if self.request_id:
            parts.append(self.request_id)
        return f"{self.message} ({', '.join(parts)})"


class AuthenticationError(VodboxError):
    """401: the credential is missing, unknown, revoked or expired."""


class ForbiddenError(VodboxError):
    """403: the credential does not allow it."""


class NotFoundError(VodboxError):
    """404 or 410: it does not exist, or another tenant owns it."""


class ConflictError(VodboxError):
    """409: its current state does not allow it."""


class InvalidRequestError(VodboxError):
    """400, 413, 415, 422: `details` names the fields."""


class RateLimitedError(VodboxError):
    """429: too many requests."""


class ServerError(VodboxError):
    """500 to 599."""


class ConnectionFailed(VodboxError):
    """There was no response: the connection failed, or a timeout passed."""


class AssetFailed(VodboxError):
    """The video cannot be played; `code` and the message are those of the asset's `error`."""


class WebhookVerificationError(ValueError):
    """The request is not a delivery of this webhook, or is too old. Respond with 400."""


_BY_STATUS: dict[int, type[VodboxError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: NotFoundError,
    413: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitedError,
}


def error_of(response: httpx.Response, retry_after: Optional[float]) -> VodboxError:
    """The error that a response means. A proxy's response has no JSON; its code is `http_<status>`."""
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        body = None
    fields: dict[str, Any] = body if isinstance(body, dict) else {}
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else VodboxError)
    details = fields.get("details")
    location = response.headers.get("location")
    redirect = f"; the base URL may have to be that of {location[:200]}" if location and 300 <= status < 400 else ""
    return kind(
        str(fields.get("error") or f"HTTP status {status}{redirect}"),
        code=str(fields.get("code") or f"http_{status}"),
        status=status,
        request_id=fields.get("request_id") or response.headers.get("x-request-id"),
        details=details if isinstance(details, dict) else None,
        retry_after=retry_after,
    )
