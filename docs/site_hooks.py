"""Hooks of the documentation site: the notebooks as pages, links to what is not in it as plain paths."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """Write out the parts of the navigation that follow from files: ``tutorials/*`` and ``decisions/*``."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    found = {
        "tutorials/*": [f"tutorials/{path.stem}.md" for path in NOTEBOOKS],
        "decisions/*": [f"decisions/{path.name}" for path in decisions],
    }

    def filled(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {name: filled(value) for name, value in entry.items()}
        if isinstance(entry, list):
            return [part for each in entry for part in (found.get(str(each)) or [filled(each)])]
        return entry

    config.nav = filled(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook."""
    for path in NOTEBOOKS:
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=page_of(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to notebooks lead to their pages; other links out of ``docs`` become the path they name."""
    address = Path(page.file.src_uri)
    folder = ROOT / ("notebooks" if address.parent.name == "tutorials" else "docs" / address.parent)

    def told(match: re.Match[str]) -> str:
        text, link, anchor = match.groups()
        target = (folder / link).resolve()
        if not target.is_relative_to(ROOT):
            return match.group(0)
        if target in NOTEBOOKS:
            inside = Path("tutorials", f"{target.stem}.md")
        elif target.is_relative_to(ROOT / "docs"):
            inside = target.relative_to(ROOT / "docs")
        else:
            return f"{text} (`{target.relative_to(ROOT)}`)"
        return f"[{text}]({os.path.relpath(inside, address.parent)}{anchor or ''})"

    return LINK.sub(told, markdown)


def page_of(path: Path) -> str:
    """A notebook as Markdown: its texts and its code, without what the cells have said."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"]).strip()
        language = "sql" if source.startswith("%%winquery") else "python"
        parts.append(source if cell["cell_type"] == "markdown" else f"```{language}\n{source}\n```")
    parts.append(f"To run it: `notebooks/{path.name}` in JupyterLab.")
    return "\n\n".join(parts) + "\n"
