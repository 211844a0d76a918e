"""The database's own check of a machine's states, generated from the machine's table."""

from django.db import models

from agents.machines import Machine


def state_check(machine: Machine) -> models.CheckConstraint:
    """A constraint that `state` is one of the machine's."""
    return models.CheckConstraint(condition=models.Q(state__in=machine.states), name=f"{machine.name}_state")


def agent_state_check(machine: Machine) -> models.CheckConstraint:
    """The same for agents, whose rows say which machine they run.

    An app that has agents with a machine of its own puts the check into `Agent._meta.constraints` when it is loaded.
    """
    condition = ~models.Q(machine=machine.name) | models.Q(state__in=machine.states)
    return models.CheckConstraint(condition=condition, name=f"{machine.name}_state")
