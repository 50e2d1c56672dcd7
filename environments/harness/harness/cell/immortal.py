"""Makes all objects of a process immortal, so that nobody counts references to them.

Python counts references in the object. So reading an object writes to its page, and the page is
copied after a fork.
CPython has objects that are not counted (PEP 683): None, small numbers. What is here when the
zygote has imported everything lives as long as the process anyway.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

# The lower half of Py_ssize_t ob_refcnt, which says so in these versions of CPython, on
# machines of 64 bits with the lower half first (Include/object.h).
_VERSIONS = ((3, 12), (3, 13))
_IMMORTAL = 0xFFFFFFFF
_MOST_LEVELS = 1000  # of references, one from the other; there are some fifty
_COUNTED_LESS = 1 << 31  # what is above is immortal already


def immortalize() -> int:
    """Make them immortal, if it is known how; return how many that were."""
    if sys.version_info[:2] not in _VERSIONS or not _works():
        return 0
    gc.unfreeze()  # or those that are frozen would not be among them
    seen: set[int] = set()
    level: list[Any] = [thing for thing in gc.get_objects() if _is_counted(thing)]
    apart: set[int] = set()
    apart |= {id(seen), id(level), id(apart)}  # what grows while it is looked at
    for _ in range(_MOST_LEVELS):
        new = [thing for thing in level if id(thing) not in seen and id(thing) not in apart]
        apart |= {id(level), id(new)}
        seen.update(map(id, new))
        if not new:
            break
        # Also what the collector does not know, as it refers to nothing: text, numbers, code.
        others = gc.get_referents(*new)
        level = [thing for thing in others if _is_counted(thing) and id(thing) not in seen]
    count = ctypes.c_uint32.from_address
    made = 0
    for address in seen:
        if 0 < (field := count(address)).value < _COUNTED_LESS:
            field.value = _IMMORTAL
            made += 1
    return made


def _is_counted(thing: object) -> bool:
    return sys.getrefcount(thing) < _COUNTED_LESS


def _works() -> bool:
    """Report whether an object that is made immortal is not counted any more."""
    thing = object()
    if sys.byteorder != "little" or sys.getrefcount(None) != _IMMORTAL:
        return False
    ctypes.c_uint32.from_address(id(thing)).value = _IMMORTAL
    more = [thing] * 10
    return len(more) == sys.getrefcount(thing) - _IMMORTAL + 10
