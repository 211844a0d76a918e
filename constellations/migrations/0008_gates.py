from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('constellations', '0007_task_replaces'),
    ]

    operations = [
        migrations.AddField(
            model_name='constellation',
            name='gates',
            field=models.JSONField(default=list, help_text='Digests of actions whose gates edits have made, or taken away unasked: they stay gated.'),
        ),
    ]
