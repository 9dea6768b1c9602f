"""Playback tokens that a server signs itself."""

from __future__ import annotations

import base64
import functools
import time
from typing import Any, Optional, Union


def sign_playback_token(
    asset: Union[str, int],
    *,
    key_id: str,
    private_key: Union[str, bytes],
    expires_in: float = 7200,
    audience: str = "v",
    not_before: Optional[float] = None,
) -> str:
    """Sign a token for the playback of one asset; requires the extra `vodbox[signing]`.

    `asset` is its `vid_…` id, your own `external_id`, or its number. `key_id` (`sk_…`) and `private_key` are those of
    a signing key; the private key is PEM, or the base64 of it that the server shows. RSA keys sign with RS256, Ed25519
    keys with EdDSA. The token is valid for `expires_in` seconds, and from the Unix time `not_before` on. `audience` is
    `v` for everything, `t` for the thumbnail, `s` for the storyboard, `g` for an animation.

    Raises ValueError for a key that cannot be used.
    """
    if expires_in <= 0:
        raise ValueError("expires_in must be positive.")
    try:
        import jwt
    except ImportError as error:
        raise ImportError("Signing tokens needs more packages: pip install 'vodbox[signing]'") from error
    text = private_key.encode() if isinstance(private_key, str) else bytes(private_key)
    key, algorithm = _load(text)
    claims: dict[str, Any] = {"sub": str(asset), "aud": audience, "exp": int(time.time() + expires_in)}
    if not_before is not None:
        claims["nbf"] = int(not_before)
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": key_id})


# Reading an RSA key checks it, which takes longer than a signature.
@functools.lru_cache(maxsize=16)
def _load(text: bytes) -> tuple[Any, str]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = text if b"-----BEGIN" in text else base64.b64decode(text)
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise ValueError("The signing key is encrypted; decrypt it first.") from error
    if isinstance(key, RSAPrivateKey):
        return key, "RS256"
    if isinstance(key, Ed25519PrivateKey):
        return key, "EdDSA"
    raise ValueError("A signing key is an RSA or Ed25519 key.")
