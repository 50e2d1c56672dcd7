"""Where the memory of new objects is, and how large its pages are."""

from __future__ import annotations

from programs import outcome


def test_new_objects_are_together() -> None:
    program = """
from harness.cell import pages
sizes = range(16, 513, 16)
gaps = [[pages._object(size, n) for n in range(1000)] for size in sizes]
for objects in gaps:
    del objects[::2]
before = list(pages._writable())
def old():
    new = [pages._object(size, n) for size in sizes for n in range(3)]
    return sum(start <= id(thing) < end for thing in new for start, end in before)
print(old())
pages.fill()
print(old())
"""
    before, after = map(int, outcome(program).split())
    assert before > 30  # of 96
    assert after <= 3  # a loop's own numbers come and go


def test_what_is_reserved_is_for_what_comes() -> None:
    program = """
from harness.cell import pages
reserved = pages.reserve()
before = list(pages._writable())
new = [pages._object(512, n) for n in range(50_000)]
del reserved
print(sum(not any(start <= id(thing) < end for start, end in before) for thing in new))
"""
    assert outcome(program) == "0\n"


def test_memory_is_as_it_was_when_its_pages_are_large() -> None:
    program = """
from harness.cell import pages
import hashlib
numbers = [bytes([n % 251]) * 500 for n in range(20_000)]
def digest():
    return hashlib.sha256(b"".join(numbers)).hexdigest()
before = digest()
pages.share()
print(digest() == before, len(numbers))
"""
    assert outcome(program) == "True 20000\n"
