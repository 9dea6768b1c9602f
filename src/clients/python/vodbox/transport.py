"""HTTP with retries."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Optional

import httpx

from ._version import VERSION
from .errors import ConnectionFailed, VodboxError, error_of

_BACKOFF_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 8.0
# A server that asks for a longer wait gets no retry: the caller decides.
_LONGEST_WAIT_SECONDS = 60.0

# The request was not sent, so every method may be repeated.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_REPEATABLE = frozenset({"GET", "HEAD", "PUT"})


class Transport:
    """Sends requests and repeats those that are safe to repeat. Threads may share it."""

    def __init__(self, http: httpx.Client, max_retries: int) -> None:
        self.http = http
        self.max_retries = max_retries

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        is_repeatable: Optional[bool] = None,
        max_retries: Optional[int] = None,
        **body: Any,
    ) -> httpx.Response:
        """The response, with a status of 200 to 299: a redirect is an error, because it could lead to another server.

        `is_repeatable` says whether the request may be repeated when it is unknown whether it was processed; by
        default GET, HEAD and PUT are, and requests with an Idempotency-Key. Raises VodboxError.
        """
        repeatable = (method in _REPEATABLE or "Idempotency-Key" in headers) if is_repeatable is None else is_repeatable
        retries = self.max_retries if max_retries is None else max_retries
        all_headers = {"User-Agent": f"vodbox-python/{VERSION}", **headers}
        attempt = 0
        while True:
            wait: Optional[float]
            error: VodboxError
            try:
                response = self.http.request(method, url, headers=all_headers, **body)
            except httpx.TransportError as cause:
                error = ConnectionFailed(f"{method} {_without_query(url)}: {cause}", code="connection_failed")
                error.__cause__ = cause
                wait = _backoff(attempt) if repeatable or isinstance(cause, _NOT_SENT) else None
            else:
                if 200 <= response.status_code < 300:
                    return response
                retry_after = _retry_after(response)
                error = error_of(response, retry_after)
                wait = _wait_for(response.status_code, retry_after, repeatable, attempt)
            if wait is None or attempt >= retries:
                raise error
            attempt += 1
            time.sleep(wait)


def _without_query(url: str) -> str:
    """A presigned URL is a credential, and errors are logged."""
    return url.split("?", 1)[0]


def _backoff(attempt: int) -> float:
    longest = min(_LONGEST_BACKOFF_SECONDS, _BACKOFF_SECONDS * 2 ** min(attempt, 10))
    return random.uniform(longest / 2, longest)


def _wait_for(status: int, retry_after: Optional[float], repeatable: bool, attempt: int) -> Optional[float]:
    """Seconds until the next attempt, or None when there is none."""
    if status in (429, 503) and retry_after is not None:
        # Refused before it was processed.
        return retry_after if retry_after <= _LONGEST_WAIT_SECONDS else None
    if status == 429 or (repeatable and status in (502, 503, 504)):
        return _backoff(attempt)
    return None


def _retry_after(response: httpx.Response) -> Optional[float]:
    """Seconds, from a number or a date (RFC 9110, 10.2.3)."""
    text: str = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
