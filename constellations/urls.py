"""Addresses under /api/ of what constellations own."""

from agents.urls import Router
from constellations.api import across_views, artifact_views, dialect_views, hint_views, past_views, session_views, views

router = Router()
router.register("constellations", views.ConstellationViews, basename="constellation")
router.register("tasks", views.TaskViews, basename="task")
router.register("constellations", dialect_views.ExportViews, basename="constellation-export")
router.register("constellations", dialect_views.EditImportViews, basename="constellation-edit")
router.register("sessions", dialect_views.ImportViews, basename="session-import")
router.register("sessions", artifact_views.SessionArtifactViews, basename="session-artifact")
router.register("sessions", artifact_views.OutputSearchViews, basename="session-search")
router.register("sessions", past_views.PastViews, basename="session-past")
router.register("sessions", session_views.TimelineViews, basename="session-timeline")
router.register("sessions", session_views.LogViews, basename="session-log")
router.register("agents", hint_views.HintViews, basename="agent-hint")
router.register("home", across_views.HomeViews, basename="home")
router.register("inbox", across_views.InboxViews, basename="inbox")
router.register("search", across_views.SearchViews, basename="search")
router.register("runs", across_views.RunViews, basename="run")
router.register("import", dialect_views.CheckViews, basename="import")

urlpatterns = router.urls
