"""Images of plotly's figures. kaleido and plotly.io._renderers import this (Dockerfile), and
plotly.io kaleido: so this imports neither before it is asked to do something.

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

START_SECONDS = 60.0  # for the browser, on a busy host; it needs one or two
DRAW_SECONDS = 90.0  # for one image: kaleido's own bound


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
            # Not here: an interrupt has a second until its kernel is ended.
            threading.Thread(target=_browsers.pop().close, daemon=True).start()
            raise


def register(renderers: Any, chosen: str | None) -> None:
    """Have a PNG beside the JSON of each figure that is shown, where nobody chose otherwise."""
    from plotly.io._base_renderers import PngRenderer

    class Image(PngRenderer):
        def to_mimebundle(self, figure: Any) -> dict[str, str]:
            try:
                bundle: dict[str, str] = super().to_mimebundle(figure)
            except Exception as e:  # noqa: BLE001 - the JSON is worth a warning
                warnings.warn(f"there is no image of the figure: {e}", stacklevel=2)
                return {}
            return bundle

    renderers["image"] = Image()
    if not chosen and renderers.default.startswith("plotly_mimetype"):
        renderers.default += "+image"
