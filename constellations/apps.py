from django.apps import AppConfig


class ConstellationsConfig(AppConfig):
    name = "constellations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from agents.tables import register_table
        from constellations import interactions, invariants, proposals, task_authors  # noqa: F401  register themselves
        from constellations.models import Attempt, Constellation, Dependency, Edit, Task

        register_table("constellation", Constellation)
        register_table("task", Task)
        register_table("dependency", Dependency)
        register_table("attempt", Attempt)
        register_table("edit", Edit)
