from django.apps import AppConfig


class ConstellationsConfig(AppConfig):
    name = "constellations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from agents.streams.tables import register_table
        from constellations.models import Attempt, Constellation, Dependency, Edit, Task
        from constellations.reads import invariants, output, task_authors  # noqa: F401  register themselves
        from constellations.runs import handler  # noqa: F401  registers itself
        from constellations.services import proposals  # noqa: F401  registers itself

        register_table("constellation", Constellation)
        register_table("task", Task)
        register_table("dependency", Dependency)
        register_table("attempt", Attempt)
        register_table("edit", Edit)
