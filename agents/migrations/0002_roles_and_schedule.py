"""What every installation begins with: the three roles, and the schedule that sees
to it that runners live, the last of the ways in which one is started."""

from django.db import migrations

ROLES = ("viewer", "operator", "admin")
SCHEDULE = "orrery: ensure runners"


def create(apps, schema_editor):
    for name in ROLES:
        apps.get_model("auth", "Group").objects.get_or_create(name=name)
    job = {"func": "agents.jobs.ensure_runners", "schedule_type": "I", "minutes": 1, "repeats": -1}
    apps.get_model("django_q", "Schedule").objects.get_or_create(name=SCHEDULE, defaults=job)


def remove(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name__in=ROLES).delete()
    apps.get_model("django_q", "Schedule").objects.filter(name=SCHEDULE).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("django_q", "0018_task_success_index"),
    ]
    operations = [migrations.RunPython(create, remove)]
