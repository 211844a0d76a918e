"""The database's own check of a machine's states, generated from the machine's table."""

from django.db import models

from agents.machines import Machine


def state_check(machine: Machine) -> models.CheckConstraint:
    """A constraint that `state` is one of the machine's."""
    return models.CheckConstraint(condition=models.Q(state__in=machine.states), name=f"{machine.name}_state")
