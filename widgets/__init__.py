"""Live, zoomable plots of running queries: in JupyterLab, from a script, as files.

Imported as ``workbench.widgets`` only. Everything reads from :class:`workbench.results.QueryResults`.
"""

from workbench.widgets.bands import Roles, roles_of
from workbench.widgets.builder import QueryForm
from workbench.widgets.live import LiveDashboard
from workbench.widgets.picture import picture, save_svg
from workbench.widgets.serve import ServerHandle, save, serve
from workbench.widgets.view import ALL, FOLLOW, HOLD, Backing, DashboardView

__all__ = [
    "ALL",
    "FOLLOW",
    "HOLD",
    "Backing",
    "DashboardView",
    "LiveDashboard",
    "QueryForm",
    "Roles",
    "ServerHandle",
    "picture",
    "roles_of",
    "save",
    "save_svg",
    "serve",
]
