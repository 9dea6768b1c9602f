"""Verification of webhook deliveries."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Union, cast

from .errors import WebhookVerificationError

if TYPE_CHECKING:
    from .models import WebhookEvent

_TIME = re.compile(r"[0-9]{1,12}")
# While a secret is rotated there are two.
_MOST_SIGNATURES = 10


def verify_webhook(
    body: Union[bytes, str],
    headers: Union[Mapping[str, str], Iterable[tuple[str, str]]],
    secrets: Union[str, Sequence[str]],
    *,
    tolerance_seconds: float = 300,
) -> WebhookEvent:
    """Verify a delivery and return its event.

    `body` is the raw body, byte for byte, before it is parsed. `headers` are those of the request, in any case, as a
    mapping or as pairs; `Svc-Signature` is used. `secrets` is the secret of the endpoint, or several, of which any may
    match. A delivery that was signed more than `tolerance_seconds` ago is refused: an attacker may repeat an old one.

    Raises WebhookVerificationError. Deliveries may arrive twice: store the `id` of each event.
    """
    candidates = [secrets] if isinstance(secrets, str) else list(secrets)
    if not candidates or not all(candidates):
        raise ValueError("A secret is required.")
    # Text that is not valid Unicode matches no signature.
    raw = body.encode(errors="replace") if isinstance(body, str) else bytes(body)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    header = next((value for name, value in pairs if name.lower() == "svc-signature"), None)
    if header is None:
        raise WebhookVerificationError("The request has no header Svc-Signature.")
    timestamp, signatures = _parse(header)
    # Every pair is compared, so the time does not depend on which one matches.
    matches = False
    for secret in candidates:
        expected = hmac.new(secret.encode(), f"{timestamp}.".encode() + raw, hashlib.sha256).hexdigest().encode()
        for signature in signatures:
            matches |= hmac.compare_digest(expected, signature)
    if not matches:
        raise WebhookVerificationError("The signature does not match the body and the secret.")
    if abs(time.time() - int(timestamp)) > tolerance_seconds:
        raise WebhookVerificationError("The delivery is too old, or the clocks differ.")
    try:
        return cast("WebhookEvent", json.loads(raw))
    except ValueError as error:
        raise WebhookVerificationError("The body is not JSON.") from error


def _parse(header: str) -> tuple[str, list[bytes]]:
    """The time and the signatures of `t=<seconds>,v1=<hex>,…`."""
    timestamp = ""
    signatures: list[bytes] = []
    for part in header[:4096].split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            timestamp = value
        elif name == "v1" and len(signatures) < _MOST_SIGNATURES:
            signatures.append(value.lower().encode(errors="replace"))
    if not _TIME.fullmatch(timestamp) or not signatures:
        raise WebhookVerificationError("The header Svc-Signature is malformed.")
    return timestamp, signatures
