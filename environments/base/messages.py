"""Messages as they are between a Jupyter client and a kernel.

Source: jupyter_client's documentation, "Messaging in Jupyter", "The Wire Protocol".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

DELIMITER = b"<IDS|MSG>"


@dataclass
class Message:
    """One message of Jupyter's wire protocol; what is passed on stays as it came."""

    header: bytes
    parent: bytes
    metadata: bytes
    content: bytes
    identities: list[bytes] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=list)

    @classmethod
    def read(cls, frames: list[bytes]) -> Message:
        """Raises ValueError for what is no message. The signature is for the end to check."""
        at = frames.index(DELIMITER)
        header, parent, metadata, content = frames[at + 2 : at + 6]
        return cls(header, parent, metadata, content, frames[:at], frames[at + 6 :])

    @classmethod
    def new(cls, kind: str, content: Any, parent: bytes = b"{}") -> Message:
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": kind,
            "session": "relay",
            "username": "kernel",
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "version": "5.3",
        }
        return cls(json.dumps(header).encode(), parent, b"{}", json.dumps(content).encode())

    @property
    def kind(self) -> str:
        return str(fields(self.header).get("msg_type", ""))

    @property
    def id(self) -> str:
        return str(fields(self.header).get("msg_id", ""))

    @property
    def parent_id(self) -> str:
        return str(fields(self.parent).get("msg_id", ""))

    def frames(self, key: bytes) -> list[bytes]:
        parts = [self.header, self.parent, self.metadata, self.content]
        signature = hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest() if key else ""
        return [*self.identities, DELIMITER, signature.encode(), *parts, *self.buffers]


def fields(part: bytes) -> dict[str, Any]:
    """Return a part of a message, decoded. Raises ValueError for what is no object of JSON."""
    try:
        decoded = json.loads(part)
    except RecursionError as e:
        raise ValueError(e) from None
    if not isinstance(decoded, dict):
        raise ValueError("a part of a message is no object")
    return decoded
