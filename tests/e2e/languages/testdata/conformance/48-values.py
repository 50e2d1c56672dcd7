# How values of the standard library are shown.

# %%
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path


@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list = field(default_factory=list)


class Colour(Enum):
    RED = 1


class Right(Flag):
    R = 4
    W = 2


[Point(1), Colour.RED, Right.R | Right.W]

# %%
date(2024, 2, 29), datetime(2024, 1, 1, tzinfo=timezone.utc), timedelta(days=1, seconds=3.5)

# %%
Decimal("0.1") + Decimal("0.2"), Fraction(1, 3), 0.1 + 0.2, 1e300 * 1e10, float("nan"), -0.0, 1 + 2j

# %%
b"bytes \x00\xff", bytearray(b"ab"), r"C:\path", 'quote "\'', """multi
line"""

# %%
"multi\nline\ttext"

# %%
import collections
import types
import uuid

Path("a") / "b", collections.Counter("abca"), collections.OrderedDict(a=1), collections.defaultdict(list, k=[1]), collections.deque([1], 3), types.SimpleNamespace(a=1), uuid.UUID(int=5)

# %%
int, type, list[int], dict[str, int | None], Exception("e"), NotImplemented, ..., slice(1, 2)

# %%
def typed(a: int, *args: str, key: "float" = 1.0) -> None: ...


import inspect

inspect.signature(typed), typed.__annotations__

# %%
print(f"{3.14159:.2f} {1_000_000:,} {'centre':^12} {255:#x} {Point(2)!r:>30}")
inspect.getsource(typed)

# %%
inspect.getsource(Point)
