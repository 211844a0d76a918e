"""Addresses under /api/ of what constellations own."""

from agents.urls import Router
from constellations.api import dialect_views, hint_views, views

router = Router()
router.register("constellations", views.ConstellationViews, basename="constellation")
router.register("tasks", views.TaskViews, basename="task")
router.register("constellations", dialect_views.ExportViews, basename="constellation-export")
router.register("constellations", dialect_views.EditImportViews, basename="constellation-edit")
router.register("sessions", dialect_views.ImportViews, basename="session-import")
router.register("agents", hint_views.HintViews, basename="agent-hint")
router.register("import", dialect_views.CheckViews, basename="import")

urlpatterns = router.urls
