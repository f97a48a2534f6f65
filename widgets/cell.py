"""A button that puts a cell into the notebook, at once and without the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from workbench.widgets.module import ModuleWidget, module


class CellButton(ModuleWidget):
    """Puts ``cell`` below the notebook cell that shows the widget ``shown_in`` (a model id), else at the end.

    The page that is pressed does it by itself, so one page does, and a busy kernel is no reason to wait. It needs a
    page whose widgets know their notebook (JupyterLab, Notebook 7). Without a ``cell`` the button cannot be pressed.
    ``pressed(done)`` is called afterwards, on whatever thread the kernel chooses; ``done`` is false where the page
    could not reach the cells.
    """

    _esm = module("cell.js")
    cell = traitlets.Unicode().tag(sync=True)
    shown_in = traitlets.Unicode().tag(sync=True)

    def __init__(self, pressed: Callable[[bool], None]) -> None:
        super().__init__()
        self._pressed = pressed
        self.on_msg(self._received)

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and content.get("type") == "pressed":
            self._pressed(bool(content.get("done")))
