from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0024_session_limit'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='plan',
            field=models.JSONField(default=list, help_text='What it means to do, as it said last: {content, status} of each entry.'),
        ),
    ]
