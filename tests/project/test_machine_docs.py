"""docs/machines.md: made from the tables, and current."""

import re

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from agents.machines import ANY, Machine, Row
from frontend.words import MACHINES
from project.machine_docs import machine_section, machines_document, mermaid_diagram


def lamp(note: str = "") -> Machine:
    return Machine(
        name="task",
        initial="off",
        terminal=frozenset({"broken"}),
        facts={"power": (True, False)},
        rows=(
            Row("off", "press", "on", guard={"power": True}, effects=("shine",), note=note),
            Row("off", "touch", "on"),
            Row("on", "press", "off"),
            Row(ANY, "drop", "broken"),
        ),
    )


def test_the_page_in_docs_is_what_the_tables_say():
    page = (settings.BASE_DIR / "docs" / "machines.md").read_text()
    assert page == machines_document(MACHINES), "docs/machines.md is not current: run `manage.py machine_docs`"


def test_the_page_has_every_row_of_every_machine_in_the_order_of_the_tables():
    page = machines_document(MACHINES)
    assert page.count("| from | event |") == page.count("```mermaid") == len(MACHINES) == 7
    for machine, part in zip(MACHINES, re.split(r"^## ", page, flags=re.M)[1:], strict=True):
        table = part[part.index("| from |") :].strip().splitlines()[2:]
        assert [re.match(r"\| [^|]+ \| `(\w+)` \|", line)[1] for line in table] == [row.event for row in machine.rows]


def test_a_diagram_has_one_edge_for_all_rows_that_lead_the_same_way():
    assert list(mermaid_diagram(lamp())) == [
        "```mermaid",
        "stateDiagram-v2",
        '    state "Any state" as Any',
        "    [*] --> off",
        "    off --> on: press [power], touch",
        "    on --> off: press",
        "    Any --> broken: drop",
        "    broken --> [*]",
        "```",
    ]


def test_a_section_tells_states_facts_guards_effects_and_notes():
    lines = machine_section(lamp("by a person"), 5).splitlines()
    assert lines[0] == "## 5. Task"
    assert "| state | initial | terminal | round_end | subtask_end |" in lines
    assert "| `off` | yes | | | |" in lines
    assert "| `broken` | | yes | yes | yes |" in lines
    assert "| `power` | `True`, `False` |" in lines
    assert "| off | `press` | power | on | `shine` | by a person |" in lines
    assert "| Any state | `drop` | | broken | | |" in lines


def test_a_bar_in_a_note_stays_in_its_cell():
    assert r"| this \| that |" in machine_section(lamp("this | that"), 1)


def test_the_command_writes_the_page_and_says_when_it_is_current(tmp_path, capsys):
    path = tmp_path / "machines.md"
    call_command("machine_docs", path=path)
    assert path.read_text() == machines_document(MACHINES)
    call_command("machine_docs", path=path, check=True)
    assert capsys.readouterr().out.splitlines() == ["machines.md written", "machines.md is current"]


@pytest.mark.parametrize("before", [None, "# old\n"])
def test_the_check_refuses_a_page_that_is_missing_or_old_and_writes_nothing(tmp_path, before):
    path = tmp_path / "machines.md"
    if before is not None:
        path.write_text(before)
    with pytest.raises(CommandError, match=r"run `manage\.py machine_docs`") as refused:
        call_command("machine_docs", path=path, check=True)
    assert refused.value.returncode == 1
    assert (path.read_text() if path.exists() else None) == before
