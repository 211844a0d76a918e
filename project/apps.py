from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "project"

    def ready(self) -> None:
        from project import checks  # noqa: F401  registers the system checks
