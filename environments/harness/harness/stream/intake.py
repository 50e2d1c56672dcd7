"""Takes what comes over a session's stream apart, in pieces of any size.

Beside frames there is the token of the session: who sends it attaches anew. It is looked
for in all that comes, as the one before may have ended in the middle of a frame.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from harness.stream.frames import TOKEN_SIZE, Pieces, ProtocolError

ADOPTED = b""  # the kind of what is no frame; the payload is the nonce


class Intake:
    """Frames, as they become whole."""

    def __init__(self, token: bytes) -> None:
        if len(token) != TOKEN_SIZE:
            raise ValueError(f"a token of {len(token)} bytes")
        self._token = token
        self._tail = b""  # of what came before: less than a token
        self._nonce: bytearray | None = None  # as much of it as came
        self._pieces = Pieces()
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
            self._pieces.clear()

    def _frames(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        if self._deaf:
            return
        try:
            yield from self._pieces.take(data)
        except ProtocolError as e:
            self.give_up(str(e))

    def give_up(self, why: str) -> None:
        """Listen to nobody until somebody attaches anew."""
        print(f"not a frame: {why}", file=sys.stderr, flush=True)
        self._deaf = True
        self._pieces.clear()
