from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_retries")]

    operations = [
        migrations.AlterField(
            model_name="inboxitem",
            name="kind",
            field=models.CharField(choices=[('interaction', 'interaction'), ('pause', 'pause'), ('resume', 'resume'), ('cancel', 'cancel'), ('ping', 'ping'), ('shutdown', 'shutdown'), ('go_on', 'go_on'), ('stop', 'stop'), ('restart', 'restart'), ('retry', 'retry'), ('cancel_task', 'cancel_task')], max_length=16),
        ),
    ]
