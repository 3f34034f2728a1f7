"""What keeps TLS with a receiver from coming about, in words for the merchant, whose certificate and server it is."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

OTHER_HOST: Final = "the certificate is for another host than the URL names"

_BY_CODE: Final[Mapping[int, str]] = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed: it must come from a public authority",
    19: "the certificate comes from an authority that is not public",
    20: "the certificate's issuer is not known: the receiver must send its intermediate certificates, too",
    21: "the certificate's issuer is not known: the receiver must send its intermediate certificates, too",
    62: OTHER_HOST,
    64: OTHER_HOST,
}
"""By OpenSSL's numbers for what comes of verifying a certificate."""

_BY_REASON: Final[Mapping[str, str]] = {
    "WRONG_VERSION_NUMBER": "the receiver speaks no TLS on this port",
    "UNSUPPORTED_PROTOCOL": "the receiver offers no TLS as new as 1.2",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the receiver offers no TLS as new as 1.2",
    "TLSV1_UNRECOGNIZED_NAME": "the receiver knows no host of the URL's name",
}


def tls_sentence(error: BaseException | None) -> str:
    """Say what went wrong. All of it is ours or OpenSSL's: the receiver's own words are not in it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_CODE.get(error.verify_code) or f"the certificate is not valid: {error.verify_message}"
    reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else ""
    if known := _BY_REASON.get(reason):
        return known
    told = reason.lower().replace("_", " ")
    return f"the TLS connection failed: {told}" if told else "the TLS connection failed"
