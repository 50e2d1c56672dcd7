"""Takes what comes over a session's stream apart, in pieces of any size.

Beside frames there is the token of the session: who sends it attaches anew. It is looked
for in all that comes, as the one before may have ended in the middle of a frame.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from harness.stream.frames import HEADER, MAX_PAYLOAD, TOKEN_SIZE, VERSION

ADOPTED = b""  # the kind of what is no frame; the payload is the nonce


class Intake:
    """Frames, as they become whole."""

    def __init__(self, token: bytes) -> None:
        if len(token) != TOKEN_SIZE:
            raise ValueError(f"a token of {len(token)} bytes")
        self._token = token
        self._tail = b""  # of what came before: less than a token
        self._nonce: bytearray | None = None  # as much of it as came
        self._buffer = bytearray()  # of a frame that is not whole
        self._deaf = False  # what comes is none of this protocol

    def take(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the kind and payload of what this completes."""
        while data:
            if self._nonce is not None:
                missing = TOKEN_SIZE - len(self._nonce)
                self._nonce += data[:missing]
                data = data[missing:]
                if len(self._nonce) == TOKEN_SIZE:
                    nonce, self._nonce = bytes(self._nonce), None
                    yield ADOPTED, nonce
                continue
            seen = self._tail + data
            at = seen.find(self._token)
            if at < 0:
                self._tail = seen[1 - TOKEN_SIZE :]
                yield from self._frames(data)
                return
            data = seen[at + TOKEN_SIZE :]
            self._tail, self._nonce, self._deaf = b"", bytearray(), False
            self._buffer.clear()

    def _frames(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        if self._deaf:
            return
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            version, kind, length = HEADER.unpack_from(self._buffer)
            if version != VERSION or length > MAX_PAYLOAD:
                self.give_up(f"version {version}, {length} bytes")
                return
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield bytes((kind,)), payload

    def give_up(self, why: str) -> None:
        """Listen to nobody until somebody attaches anew."""
        print(f"not a frame: {why}", file=sys.stderr, flush=True)
        self._deaf = True
        self._buffer.clear()
