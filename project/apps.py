import os

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "project"

    def ready(self) -> None:
        from agents.masks.doors import mask_what_is_printed
        from project import checks  # noqa: F401  registers the system checks
        from project.up.processes import MARK

        if os.environ.get(MARK):  # a child of `up`: its output is a log file
            mask_what_is_printed()
