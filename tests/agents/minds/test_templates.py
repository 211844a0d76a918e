"""Templates of prompts are files with a version."""

from __future__ import annotations

import pytest

from agents.minds.templates import PromptTemplate


def test_a_template_has_a_version_and_fills_in_its_names(tmp_path):
    path = tmp_path / "creation.txt"
    path.write_text("version: 2\n\nMake a plan for $request.\n")
    template = PromptTemplate(path)
    assert template.version == "creation/2"
    assert template.render({"request": "tea"}) == "Make a plan for tea.\n"
    with pytest.raises(KeyError):
        template.render({})


def test_a_file_without_a_version_is_refused(tmp_path):
    path = tmp_path / "creation.txt"
    path.write_text("Make a plan.\n")
    with pytest.raises(ValueError, match="first line must be"):
        PromptTemplate(path)
