"""Takes what nobody else may know out of what a registry's client says."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

_IN_URL = re.compile(r"(?<=://)[^\s/@'\"<>]+(?:/[^\s/@'\"<>:]+)*@(?=[\w.\[-])")
_QUERY = re.compile(r"(https?://[^\s?'\"<>]+)\?[^\s'\"<>]+")
# Of npmrc and of apt's auth.conf: the names of what nobody else may know.
_SECRET = re.compile(
    r"(?:_?auth(?:token)?|_?password|token|login|username|key|cert)\s*[=:\s]\s*[\"']?([^\s\"']+)",
    re.IGNORECASE,
)
MASK = "***"
ADDRESS = "(registry)"  # stands for an address of the settings
MIN_SECRET = 4  # characters; less would be found in any word
PLAIN = ("true", "false", "null")  # such values are in any text


class Masked:
    """Takes the credentials of the operator's settings out of what is told."""

    def __init__(self, *texts: str, addresses: Iterable[str] = ()) -> None:
        """Take the texts of the settings, from which the credentials are known.

        What of addresses is told is ADDRESS.
        """
        found: set[str] = set()
        for text in texts:
            for url in re.findall(r"\w+://\S+", text):
                found.update(_credentials(url))
            found.update(secret for secret in _SECRET.findall(text) if secret not in PLAIN)
        found |= {unquote(secret) for secret in found}
        found |= {form for secret in found for form in _decoded(secret)}
        instead = dict.fromkeys(addresses, ADDRESS) | dict.fromkeys(found, MASK)
        self._instead = sorted(
            (pair for pair in instead.items() if len(pair[0]) >= MIN_SECRET),
            key=lambda pair: (-len(pair[0]), pair),
        )

    def __call__(self, text: str) -> str:
        for part, instead in self._instead:
            text = text.replace(part, instead)
        return _QUERY.sub(r"\1", _IN_URL.sub(MASK + "@", text))


def _credentials(url: str) -> Iterator[str]:
    place = url.partition("://")[2].partition("/")[0]
    if "@" in place:
        user, _, password = place.rpartition("@")[0].partition(":")
        yield from filter(None, (user, password))
    query = url.partition("?")[2].partition("#")[0]
    yield from (value for part in query.split("&") if (value := part.partition("=")[2]))


def _decoded(secret: str) -> Iterator[str]:
    """Yield what npm's _auth and _password are with their base64 taken off."""
    try:
        text = base64.b64decode(secret, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield text
    yield text.partition(":")[2]
