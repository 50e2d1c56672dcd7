"""Images of plotly's figures. kaleido and plotly.io._renderers import this (Dockerfile).

kaleido starts a browser for each image. Here the first image starts one that draws all of
a kernel's.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
from collections.abc import Coroutine
from typing import Any

import plotly.io
from plotly.io._base_renderers import PngRenderer

START_SECONDS = 60.0  # for the browser, on a busy host; it needs one or two
DRAW_SECONDS = 90.0  # for one image: kaleido's own bound
NAME = "plotly_mimetype+image"  # of the renderer


class Browser:
    """One that draws, in a thread of its own: a cell has an event loop already."""

    def __init__(self) -> None:
        import kaleido  # takes longer than plotly

        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        # Without MathJax, which would come from the network.
        self._kaleido = kaleido.Kaleido(mathjax=False)
        self._run(self._kaleido.open(), START_SECONDS)

    def _run(self, work: Coroutine[Any, Any, Any], seconds: float) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def draw(self, figure: Any, **options: Any) -> bytes:
        image: bytes = self._run(self._kaleido.calc_fig(figure, **options), DRAW_SECONDS)
        return image

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._run(self._kaleido.close(), START_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)


_lock = threading.Lock()
_browsers: list[Browser] = []  # one at the most


def draw(figure: Any, opts: Any = None, *, topojson: Any = None, kopts: Any = None) -> bytes:
    """Return an image, as kaleido.calc_fig_sync does."""
    with _lock:
        if not _browsers:
            _browsers.append(Browser())
        try:
            return _browsers[0].draw(figure, opts=opts, topojson=topojson)
        except BaseException:  # of the figure or the browser: the next one has another
            _browsers.pop().close()
            raise


class Image(PngRenderer):
    """A PNG beside the figure's JSON; a warning if there is none."""

    def to_mimebundle(self, figure: Any) -> dict[str, str]:
        try:
            bundle: dict[str, str] = super().to_mimebundle(figure)
        except Exception as e:  # noqa: BLE001 - the JSON is worth a warning
            warnings.warn(f"there is no image of the figure: {e}", stacklevel=2)
            return {}
        return bundle


plotly.io.renderers["image"] = Image()
if plotly.io.renderers.default == "plotly_mimetype":
    plotly.io.renderers.default = NAME
