"""Addresses under /api/ of what constellations own."""

from agents.urls import Router
from constellations import api

router = Router()
router.register("constellations", api.ConstellationViews, basename="constellation")
router.register("tasks", api.TaskViews, basename="task")

urlpatterns = router.urls
