"""What every place has: the schema, a user who may do everything, a token, a device with many slots."""

from django.contrib.auth.models import Group, User
from django.core.management import call_command

from agents.models import Token
from agents.services.devices import device_create

DEVICE = "d"
SLOTS = 1000


def furnish() -> dict:
    """Returns the token's text."""
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("bench")
    user.groups.add(Group.objects.get(name="admin"))
    device_create(DEVICE, max_concurrent=SLOTS, by="system")
    _, text = Token.objects.create(user)
    return {"token": text}
