"""Addresses under /api/ of what constellations own."""

from agents.urls import Router
from constellations import api, dialect_api

router = Router()
router.register("constellations", api.ConstellationViews, basename="constellation")
router.register("tasks", api.TaskViews, basename="task")
router.register("constellations", dialect_api.ExportViews, basename="constellation-export")
router.register("constellations", dialect_api.EditImportViews, basename="constellation-edit")
router.register("sessions", dialect_api.ImportViews, basename="session-import")
router.register("import", dialect_api.CheckViews, basename="import")

urlpatterns = router.urls
