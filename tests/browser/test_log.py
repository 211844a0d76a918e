"""The log of a session: all attempts in one, followed live, narrowed, searched, cut where it was cut, and downloaded."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_dashboard import PATIENCE_MS, submit, wait_for_the_end

pytestmark = pytest.mark.browser


def open_log(page: Page, plan: str) -> None:
    submit(page, plan)
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    page.get_by_role("tab", name="Log").click()


def lines(page: Page):
    return page.locator(".log-lines .line")


def test_what_attempts_print_comes_while_they_print_it(page, tmp_path):
    gate = tmp_path / "seen"
    waits = f"echo before; while ! test -e {gate}; do sleep 0.05; done; echo '<b>after</b>'"
    open_log(page, f'name: prints\ntasks:\n  - {{task_id: speaks, device: laptop, command: [sh, -c, "{waits}"]}}\n')
    expect(lines(page).filter(has_text="before")).to_have_count(1, timeout=PATIENCE_MS)
    gate.touch()
    expect(lines(page).filter(has_text="<b>after</b>")).to_have_count(1, timeout=PATIENCE_MS)
    expect(page.locator(".log-lines b")).to_have_count(0)
    expect(lines(page).first.locator(".who")).to_have_text("speaks")
    lines(page).first.locator("button").click()
    expect(page.locator("#drawer h2")).to_have_text("speaks")


TWO = """\
name: two
tasks:
  - {task_id: first, device: laptop, command: [sh, -c, "for i in $(seq 3000); do echo first $i; done"]}
  - {task_id: second, device: laptop, command: [sh, -c, "echo the needle; echo second"], after: [first]}
"""


def test_a_long_log_is_virtual_narrowed_searched_and_downloaded(page):
    open_log(page, TWO)
    wait_for_the_end(page)
    log = page.get_by_role("log")
    expect(lines(page).filter(has_text="the needle")).to_have_count(1, timeout=PATIENCE_MS)
    expect(log).to_have_attribute("data-lines", "3002", timeout=PATIENCE_MS)
    assert lines(page).count() < 120
    log.press("Home")
    expect(lines(page).filter(has_text=re.compile(r"first 1$"))).to_have_count(1)
    expect(page.get_by_label("Follow")).not_to_be_checked()

    page.get_by_label("Search all output").fill("NEEDLE")
    expect(page.locator(".log-hits")).to_contain_text("1 place")
    page.locator(".log-hits button").click()
    expect(page.locator(".log-lines [data-found]")).to_contain_text("the needle")
    expect(log).to_have_attribute("data-lines", "2")
    expect(page.get_by_label("What is shown")).to_have_value(re.compile(r"attempt \d+"))

    page.get_by_label("What is shown").select_option("")
    expect(log).to_have_attribute("data-lines", "3002")
    with page.expect_download() as given:
        page.get_by_role("link", name="Download all").click()
    text = given.value.path().read_text()
    assert text.startswith("==> first, attempt 1 (completed) <==\nfirst 1\n")
    assert "==> second, attempt 1 (completed) <==\nthe needle\nsecond\n" in text


LINES = """
const log = new m.LogLines();
for (const piece of input) log.append({ pieces: [piece], first: piece.id, last: piece.id });
return log.lines.map(({ taskId, text, leftOut }) => [taskId, leftOut ?? text]);
"""


def piece(number: int, attempt: int, text: str, **more) -> dict:
    about = {"id": number, "attempt": attempt, "number": 1, "task": attempt, "task_id": f"t{attempt}", "offset": 0}
    return {**about, "text": text, "left_out": 0, "whole": None, **more}


def test_pieces_become_lines_and_a_cut_is_one_of_them(page):
    page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
    page.reload()
    pieces = [piece(1, 1, "one\ntw"), piece(2, 1, "o\n"), piece(3, 2, "other"), piece(4, 1, "\nend\n", left_out=2_300_000)]
    found = page.evaluate(
        "async ([script, input]) => {"
        "  const m = await import('/static/frontend/session/log/log_lines.js');"
        "  return new (async () => {}).constructor('m', 'input', script)(m, input);"
        "}",
        [LINES, pieces],
    )
    assert found == [["t1", "one"], ["t1", "two"], ["t2", "other"], ["t1", 2_300_000], ["t1", ""], ["t1", "end"]]
