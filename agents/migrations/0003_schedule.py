"""The safety net that sees to it that runners live: last of the ways in which one is started."""

from django.db import migrations

NAME = "orrery: ensure runners"


def create(apps, schema_editor):
    schedules = apps.get_model("django_q", "Schedule").objects
    schedules.get_or_create(name=NAME, defaults={"func": "agents.jobs.ensure_runners", "schedule_type": "I", "minutes": 1, "repeats": -1})


def remove(apps, schema_editor):
    apps.get_model("django_q", "Schedule").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [("agents", "0002_groups"), ("django_q", "0018_task_success_index")]
    operations = [migrations.RunPython(create, remove)]
