"""The types of rows and the tables of the fold say the same columns."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from django.apps import apps

from agents.streams import row_types
from agents.streams.tables import TABLES
from constellations.live import row_types as constellation_rows

TYPES: dict[str, Any] = {
    "session": row_types.SessionRow,
    "device": row_types.DeviceRow,
    "actor": row_types.ActorRow,
    "inbox": row_types.InboxRow,
    "agent": row_types.AgentRow,
    "loop": row_types.LoopRow,
    "evidence": row_types.EvidenceRow,
    "phase": row_types.PhaseRow,
    "approval": row_types.ApprovalRow,
    "policy": row_types.PolicyRow,
    "model_profile": row_types.ModelProfileRow,
    "model_call": row_types.ModelCallRow,
    "budget": row_types.BudgetRow,
    "artifact": row_types.ArtifactRow,
    "constellation": constellation_rows.ConstellationRow,
    "task": constellation_rows.TaskRow,
    "dependency": constellation_rows.DependencyRow,
    "attempt": constellation_rows.AttemptRow,
    "edit": constellation_rows.EditRow,
}
OF_A_KIND = {"int": int, "float": float, "text": str, "time": str, "bool": bool}


def test_every_table_of_the_fold_has_a_type():
    assert TYPES.keys() == TABLES.keys()


@pytest.mark.parametrize("name", TYPES)
def test_a_type_has_the_columns_of_its_table(name):
    table, hints = TABLES[name], get_type_hints(TYPES[name])
    model = next(model for model in apps.get_models() if model._meta.db_table == table.db_table)
    nullable = {column.attname for column in model._meta.concrete_fields if column.null}
    assert list(hints) == list(table.kinds)
    for column, kind in table.columns:
        wanted: Any = Any if kind == "json" else OF_A_KIND[kind]
        if wanted is Any:
            assert hints[column] is Any, column
        elif column in nullable:
            assert set(get_args(hints[column])) == {wanted, type(None)}, column
        else:
            assert hints[column] is wanted, column


@pytest.mark.parametrize("name", [name for name in TYPES if {"state", "entered_at"} <= TABLES[name].kinds.keys()])
def test_what_a_machine_moves_has_what_turns_look_at(name):
    assert get_type_hints(row_types.StatefulRow).items() <= get_type_hints(TYPES[name]).items()
