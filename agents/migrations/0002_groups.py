"""The three roles, from the first installation on (architecture, section "Who may what")."""

from django.db import migrations

ROLES = ("viewer", "operator", "admin")


def create(apps, schema_editor):
    for name in ROLES:
        apps.get_model("auth", "Group").objects.get_or_create(name=name)


def remove(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name__in=ROLES).delete()


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(create, remove)]
