"""Widgets whose page runs a module of ours, and who are heard there however long the module took to load."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import anywidget
import traitlets


class ModuleWidget(anywidget.AnyWidget):
    """A widget with the text of a :func:`module` as ``_esm``."""

    #: The id of the widget's model, by which the module finds it in the page (``messages.js``).
    own_id = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        own_id = uuid4().hex
        super().__init__(model_id=own_id, own_id=own_id)


def module(*names: str) -> str:
    """One module of JavaScript from files of this folder, in that order; the last one exports what it does."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in ("messages.js", *names))
