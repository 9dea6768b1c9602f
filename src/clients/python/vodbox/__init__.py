"""Client of vodbox: the API, resumable uploads, webhook verification and playback tokens."""

from ._version import VERSION as __version__
from .client import Client
from .errors import (
    AssetFailed,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    ServerError,
    VodboxError,
    WebhookVerificationError,
)
from .pagination import Page, Records
from .parameters import NOT_GIVEN, NotGiven
from .signing import sign_playback_token
from .webhooks import verify_webhook

__all__ = [
    "NOT_GIVEN",
    "AssetFailed",
    "AuthenticationError",
    "Client",
    "ConflictError",
    "ConnectionFailed",
    "ForbiddenError",
    "InvalidRequestError",
    "NotFoundError",
    "NotGiven",
    "Page",
    "RateLimitedError",
    "Records",
    "ServerError",
    "VodboxError",
    "WebhookVerificationError",
    "__version__",
    "sign_playback_token",
    "verify_webhook",
]
