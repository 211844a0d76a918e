from django.db import migrations, models
from django.db.models.deletion import CASCADE
from django.utils import timezone

from agents.ids import row_range

TOKEN = "token:"


def find_parents(apps, schema_editor):
    """Tokens that tokens have made get their parents; where the parent was revoked, they have expired from now on."""
    Token, Event = apps.get_model("agents", "Token"), apps.get_model("agents", "Event")
    system = apps.get_model("agents", "Stream").objects.filter(kind="system").first()
    if system is None:
        return
    made = Event.objects.filter(pk__range=row_range(system.pk), type="token_created", by__startswith=TOKEN).order_by("id")
    for key, maker in made.values_list("data__token_key", "by"):
        child = Token.objects.filter(token_key=key).first()
        if child is None:
            continue
        parent = Token.objects.filter(token_key=maker.removeprefix(TOKEN)).first()
        child.parent = parent
        ends = timezone.now() if parent is None else parent.expiry
        if ends is not None and (child.expiry is None or child.expiry > ends):
            child.expiry = ends
        if parent is not None:
            child.scopes = [scope for scope in child.scopes if scope in parent.scopes]
        child.save(update_fields=["parent", "expiry", "scopes"])


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0011_device_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='token',
            name='parent',
            field=models.ForeignKey(help_text='The token it was made with: it ends with that one, and may never do more.', null=True, on_delete=CASCADE, related_name='children', to='agents.token'),
        ),
        migrations.RunPython(find_parents, migrations.RunPython.noop),
    ]
