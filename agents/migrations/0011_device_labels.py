"""Devices have labels, by which policies know them, and there is a role for who may make devices without being an admin.

Devices of names that are not taken any more stay: each of them is refused its workspace (agents.tools.command).
"""

from django.db import migrations, models

ROLE = "devices"


def create(apps, schema_editor):
    apps.get_model("auth", "Group").objects.get_or_create(name=ROLE)


def remove(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name=ROLE).delete()


class Migration(migrations.Migration):
    dependencies = [("agents", "0010_runner_confinement"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        migrations.AddField(
            model_name="device",
            name="labels",
            field=models.JSONField(default=list, help_text="What policies know it by; given by who may make devices."),
        ),
        migrations.AddField(
            model_name="policy",
            name="label",
            field=models.CharField(
                default="*", help_text="Pattern of one of the device's labels; *: any device, also without labels.",
                max_length=80,
            ),
        ),
        migrations.RunPython(create, remove),
    ]
