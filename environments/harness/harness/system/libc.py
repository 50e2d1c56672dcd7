"""The C library, which takes long to be looked for after a fork."""

from __future__ import annotations

import ctypes

LIBC = ctypes.CDLL(None, use_errno=True)
