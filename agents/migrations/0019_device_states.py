"""Devices get the states of their machine. Each is told by an event of its stream, so that folding it still gives its row."""

from django.db import migrations
from django.utils import timezone

from agents import ids
from agents.clock import to_iso

STATES = {"ONLINE": "connected", "DRAINING": "draining", "OFFLINE": "disconnected"}


def rename(apps, schema_editor):
    Device, Stream, Event = (apps.get_model("agents", name) for name in ("Device", "Stream", "Event"))
    now = timezone.now()
    for device in Device.objects.all():
        said = {
            "state": STATES.get(device.state, "disconnected"),
            "is_off": device.state == "OFFLINE",
            "entered_at": device.created_at,
        }
        Device.objects.filter(pk=device.pk).update(**said)
        stream = Stream.objects.select_for_update().get(pk=device.pk)
        stream.head += 1
        stream.save(update_fields=["head"])
        told = {**said, "entered_at": to_iso(device.created_at.timestamp())}
        Event.objects.create(
            id=ids.row_id(stream.pk, stream.head), stream_id=stream.pk, seq=stream.head, at=now, by="system",
            type="device_changed", data={"set": {"device": {str(device.pk): told}}},
        )


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0018_devices'),
    ]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
