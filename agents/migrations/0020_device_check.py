from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0019_device_states'),
    ]

    operations = [
        migrations.AlterField(
            model_name='device',
            name='entered_at',
            field=models.DateTimeField(),
        ),
        migrations.AddConstraint(
            model_name='device',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('disconnected', 'connecting', 'connected', 'draining', 'failed', 'retired'))), name='device_state'),
        ),
    ]
