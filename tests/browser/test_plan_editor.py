"""The editor of plans in the request box, against the real server's check."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
PLAN = """\
name: edited
tasks:
  - task_id: first
    device: laptop
    command: [echo, one]  # says one
"""
WRONG = PLAN.replace("command:", "comand:")


def box(page: Page):
    return page.get_by_label("Plan (YAML or JSON)")


def editor(page: Page):
    """The box, once its module has come."""
    expect(page.locator(".cm-editor")).to_be_visible(timeout=PATIENCE_MS)
    return box(page)


def test_what_the_server_would_refuse_is_marked_while_a_plan_is_written(page):
    editor(page).fill(WRONG)
    expect(page.locator(".editor .bad")).to_have_text("5")
    expect(page.locator(".cm-lintRange-error")).to_contain_text("comand")
    expect(page.locator(".problems li")).to_contain_text("line 5")
    expect(box(page)).to_have_attribute("aria-invalid", "")
    box(page).fill(PLAN)
    expect(page.locator(".checked")).to_have_text("Nothing is wrong with it: 1 task, 0 dependencies.")
    expect(page.locator(".editor .bad")).to_have_count(0)
    expect(page.locator(".problems li")).to_have_count(0)
    assert box(page).get_attribute("aria-invalid") is None
    box(page).fill("`echo one` on laptop")
    expect(page.locator(".checked")).to_be_empty()


def test_keys_texts_and_comments_have_colours_of_the_scheme(page):
    colour = "node => getComputedStyle(node).color"
    page.emulate_media(color_scheme="light")
    editor(page).fill(PLAN)
    key, comment = (page.locator(".cm-line span", has_text=text).first for text in ("task_id", "# says one"))
    light = [key.evaluate(colour), comment.evaluate(colour)]
    page.emulate_media(color_scheme="dark")
    dark = [key.evaluate(colour), comment.evaluate(colour)]
    assert len({*light, *dark}) == 4


def test_tab_indents_and_escape_then_tab_leaves_the_editor(page):
    editor(page).fill("name: x")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    expect(page.locator("textarea[name=plan]")).to_have_value("  name: x")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(box(page)).to_be_focused()


def test_control_and_enter_run_the_plan(page):
    editor(page).fill(PLAN)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))


def test_a_file_that_is_dropped_replaces_the_text(page):
    editor(page).fill("name: before")
    page.locator(".cm-content").evaluate(
        "(node, text) => { const data = new DataTransfer(); data.items.add(new File([text], 'plan.yaml'));"
        " node.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })); }",
        PLAN,
    )
    expect(page.locator("textarea[name=plan]")).to_have_value(PLAN)


def test_without_its_module_there_is_a_plain_field_that_does_the_same(page):
    page.route("**/vendor/codemirror.js", lambda route: route.abort())
    page.goto("/")
    box(page).fill(WRONG)
    expect(page.locator(".problems li")).to_contain_text("line 5")
    expect(page.locator(".cm-editor")).to_have_count(0)
    page.get_by_role("button", name="line 5").click()
    chosen = box(page).evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")
    assert chosen == "    comand: [echo, one]  # says one"
    box(page).fill(PLAN)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))


def test_what_was_typed_is_there_after_going_on_and_back(page):
    editor(page).fill(PLAN)
    page.goto("/search/")
    page.go_back()
    editor(page)
    expect(page.locator("textarea[name=plan]")).to_have_value(PLAN)
    expect(page.locator(".cm-content")).to_contain_text("name: edited")


def test_what_is_typed_goes_over_what_the_browser_has_selected_whatever_the_editor_has_heard(page):
    """In one task of the page the selection changes and a text comes: the editor hears of the selection after that."""
    editor(page).fill(PLAN)
    page.keyboard.press("Control+Home")
    page.keyboard.press("Shift+End")
    box(page).evaluate("""content => {
        const range = document.createRange();
        range.selectNodeContents(content);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        const typed = { inputType: "insertText", data: "name: all", bubbles: true, cancelable: true };
        content.dispatchEvent(new InputEvent("beforeinput", typed));
    }""")
    expect(page.locator(".cm-line")).to_have_text(["name: all"])


def test_a_selection_that_is_longer_than_what_is_drawn_is_written_over_as_a_whole(page):
    editor(page).fill("\n".join(f"# line {number}" for number in range(2_000)))
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("name: short")
    expect(page.locator(".cm-line")).to_have_text(["name: short"])
    assert page.evaluate("document.querySelector('textarea[hidden]').value") == "name: short"
