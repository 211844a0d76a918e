"""The files of templates: which belong together, and the version that they have together."""

from __future__ import annotations

from pathlib import Path

from agents.minds.question import SystemPrompt
from agents.minds.templates import PromptTemplate, load_template
from agents.minds.untrusted import RULE
from constellations.prompts.quoting import json_line
from constellations.prompts.scene import Scene

TEMPLATES = Path(__file__).parent / "templates"


def template(name: str) -> PromptTemplate:
    """`system` is templates/system.txt, `creation/examples` is templates/creation/examples.txt."""
    return load_template(TEMPLATES / f"{name}.txt")


def render_system_prompt(mode: str, scene: Scene) -> SystemPrompt:
    """The shared beginning, what is the mode's own, and its examples."""
    own, examples = template(mode), template(f"{mode}/examples")
    shared, user = template("system"), template("user")
    text = shared.render(
        {
            "rule": RULE,
            "mode": own.render({"tools": render_tools(scene), "doing": DOING[scene.instructions]}).strip(),
            "examples": examples.render({}).strip(),
        }
    )
    return SystemPrompt(text, " ".join(each.version for each in (own, shared, examples, user)))


DOING = {
    True: (
        "A task is done by a `command` (a list of arguments, no shell), by a `tool` with `arguments`, or by a device agent: "
        "a task with a `description` and without command and tool is an instruction, which a model on the device carries out. "
        "Write an instruction where the way is not known beforehand; say in `result_schema` what it has to bring where other "
        "tasks read it."
    ),
    False: (
        "A task is done by a `command` (a list of arguments, no shell) or by a `tool` with `arguments`. "
        "There are no device agents with a model here: a task in words alone is refused."
    ),
}
"""What a task may be, by whether tasks in words may be planned."""


def render_tools(scene: Scene) -> str:
    """Each tool of the editor: its name, what it does, and the JSON Schema of its parameters on one line."""
    return "\n".join(f"- {tool.name}: {tool.description}\n  parameters: {json_line(tool.parameters)}" for tool in scene.tools)
