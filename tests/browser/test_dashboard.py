"""The dashboard as a person uses it: real server, real runners, real commands, a real browser."""

import re

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
PLAN = """\
name: two in a row
tasks:
  - task_id: first
    device: laptop
    command: [sleep, "0.5"]
  - task_id: second
    name: The second one
    device: laptop
    command: [sh, -c, "echo working; sleep 0.5; echo '{\\"answer\\": 42}'"]
    after: [first]
"""
BROKEN = """\
name: broken
tasks:
  - task_id: first
    device: laptop
    command: [sleep, "0.5"]
    conditon: yes
"""
WATCH = """
window.seen = {};
new MutationObserver(() => {
  for (const node of document.querySelectorAll("[data-task]")) {
    const states = (window.seen[node.dataset.task] ??= []);
    const tone = getComputedStyle(node).getPropertyValue("--tone");
    if (states.at(-1)?.state !== node.dataset.state) states.push({ state: node.dataset.state, tone });
  }
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-state", "data-tone"] });
"""


def write_plan(page: Page, text: str) -> None:
    """Into the editor, once it has taken the plain field's place."""
    expect(page.locator(".editor .cm-content")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_label("Plan (YAML or JSON)").fill(text)


def submit(page: Page, plan: str, title: str = "from the test") -> None:
    page.goto("/")
    page.get_by_label("Title").fill(title)
    write_plan(page, plan)
    page.get_by_role("button", name="Run", exact=True).click()


def wait_for_the_end(page: Page, outcome: str = "completed") -> None:
    expect(page.locator("#requests > li").first).to_have_attribute("data-outcome", outcome, timeout=PATIENCE_MS)


def node(page: Page, task_id: str):
    return page.locator(f'[data-task="{task_id}"]')


def test_a_task_changes_its_colour_without_a_reload(page, tmp_path):
    gate, last = tmp_path / "seen", tmp_path / "coloured"
    wait = "while ! test -e {gate}; do sleep 0.05; done"
    page.add_init_script(WATCH)
    plan = PLAN.replace('[sleep, "0.5"]', f"""[sh, -c, "{wait.format(gate=gate)}"]""")
    submit(page, plan.replace("sleep 0.5;", f"{wait.format(gate=last)};"))
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))
    page.evaluate("window.marker = 'the same page'")
    expect(node(page, "second")).to_have_attribute("data-state", "WAITING_DEPENDENCY", timeout=PATIENCE_MS)
    gate.touch()
    expect(node(page, "second")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    running = node(page, "second").locator(".state").evaluate("text => getComputedStyle(text).fill")
    last.touch()
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    wait_for_the_end(page)

    assert page.evaluate("window.marker") == "the same page"
    passed = page.evaluate("window.seen.second")
    states = [each["state"] for each in passed]
    assert states[0] in ("WAITING_DEPENDENCY", "PENDING")
    assert states[-2:] == ["RUNNING", "COMPLETED"]
    assert len({each["tone"] for each in passed}) == len(states)
    done = node(page, "second").locator(".state").evaluate("text => getComputedStyle(text).fill")
    assert running != done
    expect(node(page, "second").locator(".state")).to_have_text("Completed")


def test_the_result_progress_and_events_of_a_run_are_shown(page):
    submit(page, PLAN, "with a result")
    wait_for_the_end(page)
    expect(page.locator("h1")).to_have_text("with a result")
    expect(page.locator("#requests > li").first).to_contain_text("Completed")
    expect(page.locator("#progress .count")).to_have_text("2 of 2 tasks ended")
    expect(page.locator("#actor .state")).to_have_text("Completed")
    expect(page.locator("#feed")).to_contain_text("The second one completed")
    expect(page.locator("#agents [data-state=FINISH]")).to_have_count(3)
    expect(page.locator("#connection")).to_have_text("Live")
    assert int(page.locator("body").get_attribute("data-seq")) > 10


def test_what_is_on_the_page_survives_a_reload(page):
    submit(page, PLAN)
    wait_for_the_end(page)
    expect(page.locator("#feed")).to_contain_text("is idle")
    seq = page.locator("body").get_attribute("data-seq")
    page.reload()
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED")
    expect(page.locator("body")).to_have_attribute("data-seq", re.compile(r"\d+"))
    assert int(page.locator("body").get_attribute("data-seq")) >= int(seq)
    expect(page.locator("#feed")).to_contain_text("The second one completed")


def test_the_details_of_a_task_open_by_keyboard_and_give_the_focus_back(page):
    submit(page, PLAN)
    wait_for_the_end(page)
    node(page, "first").focus()
    page.keyboard.press("ArrowDown")
    expect(node(page, "second")).to_be_focused()
    page.keyboard.press("Enter")
    drawer = page.locator("#drawer")
    expect(drawer.get_by_role("heading", level=2)).to_have_text("The second one")
    expect(drawer.locator(".answer pre")).to_contain_text('"answer": 42')
    expect(drawer.locator(".output pre")).to_contain_text("working")
    expect(drawer.locator(".attempts tbody tr")).to_have_count(1)
    expect(drawer.locator(".dependencies")).to_contain_text("✓ holds")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(node(page, "second")).to_be_focused()


KEEPS = """\
name: keeps
tasks:
  - task_id: make
    device: laptop
    command: printf '<script>alert(1)</script>' > page.html
    shell: true
    outputs: [page.html]
  - task_id: use
    device: laptop
    after: [make]
    command: [cat, in.html]
    inputs: {in.html: "make#page.html"}
"""


def test_what_a_task_has_kept_is_downloaded_from_its_details_and_never_opened(page):
    submit(page, KEEPS)
    wait_for_the_end(page)
    node(page, "make").click(timeout=PATIENCE_MS)
    kept = page.locator("#drawer").locator(".artifacts li")
    expect(kept).to_contain_text("page.html file · 25 B · attempt 1")
    with page.expect_download() as started:
        kept.get_by_role("link").click()
    assert started.value.suggested_filename == "page.html"
    with open(started.value.path()) as content:
        assert content.read() == "<script>alert(1)</script>"
    answer = page.request.get(kept.get_by_role("link").get_attribute("href"), headers={"Range": "bytes=1-6"})
    assert (answer.status, answer.text()) == (206, "script")
    assert answer.headers["content-disposition"].startswith("attachment")
    with page.expect_download():  # typed into the address bar, too
        page.evaluate("address => { location = address }", kept.get_by_role("link").get_attribute("href"))


def test_a_click_on_a_task_opens_its_details(page):
    submit(page, PLAN)
    node(page, "first").click(timeout=PATIENCE_MS)
    expect(page.locator("#drawer").locator('[data-field="command"]')).to_have_text("sleep 0.5")
    page.get_by_role("button", name="Close the details").click()
    expect(page.locator("#drawer")).to_be_hidden()


def test_what_a_plan_has_wrong_is_shown_with_its_line_and_key(page):
    submit(page, BROKEN)
    problems = page.locator(".problems li")
    expect(problems.first).to_contain_text("line 6")
    expect(problems.first.locator("code")).to_contain_text("conditon")
    expect(page.locator(".editor .bad")).to_have_text("6")
    page.get_by_role("button", name="line 6").click()
    box = page.get_by_label("Plan (YAML or JSON)")
    assert page.evaluate("getSelection().toString()") == "    conditon: yes"
    box.fill(PLAN)
    expect(problems).to_have_count(0)
    expect(page.locator(".editor .bad")).to_have_count(0)


def test_a_plan_that_is_refused_leaves_no_session_behind(page):
    submit(page, BROKEN, "never made")
    expect(page.locator(".problems li")).to_have_count(1)
    page.reload()
    expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    expect(page.locator("#sessions")).not_to_contain_text("never made")


def test_a_request_in_words_becomes_a_constellation(page):
    submit(page, "`echo one` on laptop, then `echo two` on laptop")
    wait_for_the_end(page)
    expect(node(page, "task_002")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)


def test_words_that_nobody_understands_are_refused_with_their_place(page):
    submit(page, "please do something nice on laptop")
    expect(page.locator(".problems li").first).to_contain_text("language model")


def test_an_example_fills_the_request_box(page):
    page.get_by_label("Example").select_option("digits")
    expect(page.locator("textarea[name=plan]")).to_have_value(re.compile("^name: digits$", re.MULTILINE))


def test_a_plan_file_can_be_uploaded(page):
    page.get_by_label("File").set_input_files({"name": "plan.yaml", "mimeType": "text/yaml", "buffer": PLAN.encode()})
    expect(page.locator("textarea[name=plan]")).to_have_value(PLAN)


def test_a_next_request_in_the_session_gets_a_graph_of_its_own(page):
    submit(page, PLAN)
    wait_for_the_end(page)
    page.get_by_text("New request").click()
    write_plan(page, "name: again\ntasks:\n  - {task_id: only, device: laptop, tool: noop}\n")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#requests > li")).to_have_count(2, timeout=PATIENCE_MS)
    expect(node(page, "only")).to_have_attribute("data-state", "COMPLETED", timeout=PATIENCE_MS)
    page.get_by_role("combobox", name="Constellation").select_option(index=1)
    expect(node(page, "second")).to_be_visible()
    expect(node(page, "only")).to_have_count(0)


def test_cancelling_from_the_page_ends_what_runs(page):
    submit(page, "name: long\ntasks:\n  - {task_id: long, device: laptop, command: [sleep, '60']}\n")
    expect(node(page, "long")).to_have_attribute("data-state", "RUNNING", timeout=PATIENCE_MS)
    page.get_by_label("More commands").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_label("Reason").fill("seen enough")
    page.get_by_role("button", name="Cancel the session").click()
    expect(node(page, "long")).to_have_attribute("data-state", "CANCELLED", timeout=PATIENCE_MS)
    expect(page.locator("#actor .state")).to_have_text("Cancelled", timeout=PATIENCE_MS)
    expect(page.locator("#actor").get_by_role("button", name="Pause")).to_have_count(0)


@pytest.mark.parametrize("code", [4000, 4408, 4500])
def test_a_lost_connection_is_resumed_where_it_broke_off(page, code):
    opened: list[WebSocketRoute] = []

    def through(route: WebSocketRoute) -> None:
        opened.append(route)
        route.connect_to_server()

    page.route_web_socket(re.compile("/ws/"), through)
    submit(page, PLAN)
    expect(node(page, "first")).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("window.marker = 'the same page'")
    opened[0].close(code=code)
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=PATIENCE_MS)
    wait_for_the_end(page)
    expect(node(page, "second")).to_have_attribute("data-state", "COMPLETED")
    assert page.evaluate("window.marker") == "the same page"
    begun, resumed = (int(re.search(r"[?&]since=(\d+)$", route.url)[1]) for route in opened[:2])
    assert begun <= resumed, "behind the rows that came over HTTP, then behind what had come since"


def test_a_request_that_gets_no_answer_says_so_and_may_be_sent_again(page):
    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/api/sessions/", refuse)
    submit(page, PLAN)
    expect(page.locator(".problems")).to_contain_text("cannot be reached")
    page.unroute("**/api/sessions/", refuse)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile(r"/sessions/\d+/$"))


def test_names_from_a_plan_never_become_markup(page):
    name = "<img src=x onerror=window.broken=1>"
    submit(page, f"name: '{name}'\ntasks:\n  - {{task_id: plain, name: '{name}', device: laptop, tool: noop}}\n", name)
    wait_for_the_end(page)
    node(page, "plain").click()
    expect(page.locator("#drawer").get_by_role("heading", level=2)).to_have_text(name)
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.broken") is None


def test_a_login_link_works_in_one_browser_only(anonymous, installation):
    link = installation.login_link()
    anonymous.goto(link)
    expect(anonymous.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    anonymous.get_by_role("button", name="Log out").click()
    anonymous.goto(link)
    expect(anonymous.get_by_role("heading")).to_have_text("This link is used up")
