"""What stands for a dashboard where no kernel answers: a picture in an output of its own, after the dashboard's.

JupyterLab shows a widget whose kernel has gone as one line of error, whatever else its output holds. So the
picture is an output of its own: hidden by its style sheet while the dashboard before it lives, and hiding that line
otherwise. The page draws it anew whenever the notebook is saved (``live.js``); elsewhere (nbconvert, GitHub) it
simply stands there.
"""

from __future__ import annotations

from base64 import b64encode

#: By this class the page knows the output that it may draw anew; ``live.js`` gives the other one to live dashboards.
STILL, LIVE = "winquery-still", "winquery-live"

_STYLE = f"""
.jp-OutputArea-child:has(.{LIVE}) + .jp-OutputArea-child:has(.{STILL}) {{ display: none }}
.jp-OutputArea-child:not(:has(.{LIVE})):has(+ .jp-OutputArea-child .{STILL}) {{ display: none }}
"""
_TOLD = (
    "A picture of the dashboard, from when the notebook was saved. Run the cell to see it live; if it is not, "
    "<code>python -m workbench doctor</code> tells what is missing."
)


def still_bundle(svg: str) -> dict[str, str]:
    """The output that follows a live dashboard; ``svg`` is the picture until the page saves one."""
    source = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
    html = (
        f'<div class="{STILL}"><style>{_STYLE}</style><img src="{source}" alt="the dashboard" style="max-width:100%">'
        f'<div style="font:12px sans-serif;opacity:.7">{_TOLD}</div></div>'
    )
    return {"text/plain": "", "text/html": html}


#: The same output once its dashboard is closed, which then shows its own last picture.
EMPTY = {"text/plain": "", "text/html": ""}
