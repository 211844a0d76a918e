"""Tasks on a browser, from the plan to the page: a real chromium held by the real engine."""

import contextlib
import json
import os
import signal

import pytest
from django.conf import settings

from agents.browsing.actions import ACTIONS
from agents.devices.host import instance_name
from agents.devices.processes import list_pids, read_mark
from agents.models import Approval, Artifact, Device, Event, Evidence, ModelCall, Transition
from agents.services.approvals import approval_decide
from agents.services.devices import device_change, device_create
from agents.services.model_profiles import model_profile_create
from constellations.errors import PlanRejected
from constellations.models import Attempt, Task
from tests.agents.browsing.conftest import web  # noqa: F401  a fixture
from tests.agents.llm.conftest import loopback, openai_provider, protocol, provider  # noqa: F401  fixtures
from tests.constellations.runs.attempts.test_crews import WAITING, found
from tests.constellations.runs.attempts.test_minds import call, model  # noqa: F401  a fixture, too
from tests.constellations.runs.test_run import in_thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

SHOP = "<!doctype html><title>Shop</title><h1>Shop</h1><button onclick=\"o.textContent = 'bought'\">Buy</button><p id=o></p>"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A chromium takes ten seconds to start where others start, too, and some tests start two."""
    monkeypatch.setattr("tests.conftest.PATIENCE_S", 120.0)


@pytest.fixture
def window(web, transactional_db) -> Device:  # noqa: F811
    web.show("/", SHOP)
    return device_create("window", kind="browser", connection={"allow": [web.address]}, by="system")


def task(*steps: dict, **more) -> dict:
    return {"tasks": [{"task_id": "work", "device": "window", "steps": list(steps), **more}]}


def use(tool: str, **more) -> dict:
    kept = {key: more.pop(key) for key in ("save", "expect", "confirm") if key in more}
    return {"tool": f"browser.{tool}", "arguments": more, **kept}


def test_a_plan_opens_a_page_acts_on_it_and_keeps_what_it_saw(engine, window, web):  # noqa: F811
    steps = [
        use("open", url=web.address + "/"), use("click", role="button", name="Buy"),
        use("wait", text="bought"), {"observe": True, "save": "seen"},
    ]  # fmt: skip
    made = engine.carry_out(task(*steps))
    result = made.tasks.get().result
    assert made.state == "COMPLETED"
    assert 'button "Buy"' in result["seen"]["tree"]
    assert "paragraph [ref=e4]: bought" in result["seen"]["tree"]
    picture = Artifact.objects.get()
    assert (picture.kind, picture.sha256) == ("picture", result["seen"]["picture"]["sha256"])
    assert Evidence.objects.get(kind="observe").tool == "browser.look"
    window.refresh_from_db()
    assert (window.state, window.platform, window.facts["browser"].startswith("Chromium ")) == ("connected", "browser", True)
    assert [each["name"] for each in window.tools][:2] == ["browser.open", "browser.click"]


def test_a_task_without_a_device_goes_to_the_browser_and_a_command_does_not(engine, window, device, web):  # noqa: F811
    url = web.address + "/"
    plan = {"tasks": [
        {"task_id": "page", "tool": "browser.open", "arguments": {"url": url}}, {"task_id": "shell", "command": "true"},
    ]}  # fmt: skip
    assert engine.carry_out(plan).state == "COMPLETED"
    assert dict(Attempt.objects.values_list("task__task_id", "device__name")) == {"page": "window", "shell": "laptop"}
    with pytest.raises(PlanRejected, match=r"no device offers a tool browser\.opne.*did you mean browser\.open"):
        engine.submit({"tasks": [{"task_id": "a", "tool": "browser.opne", "arguments": {"url": url}}]})
    with pytest.raises(PlanRejected, match=r"browser\.open takes no href"):
        engine.submit({"tasks": [{"task_id": "a", "tool": "browser.open", "arguments": {"href": url}}]})


def test_an_app_agent_acts_on_its_page_only_and_shares_the_blackboard(engine, window, web):  # noqa: F811
    url = web.address + "/"
    own = [use("open", url=url), use("read", save="said"), {"observe": True, "save": "seen"}]
    child = {"name": "buyer", "app": "shop", "visual": False, "steps": own}
    result = engine.carry_out(task({"delegate": child}, use("read", page="shop", save="after"))).tasks.get().result
    assert (result["said"]["page"], "picture" in result["seen"]) == ("shop", False)
    assert result["after"]["content"] == result["said"]["content"]
    child["steps"] = [use("open", url=url, page="main")]
    failed = engine.carry_out(task({"delegate": child})).tasks.get()
    assert "this agent works on the page shop, not on main" in failed.error


def test_what_is_refused_fails_the_step_and_is_an_event_of_the_session(engine, window, web):  # noqa: F811
    made = engine.carry_out(task(use("open", url="http://127.0.0.1:9/")))
    assert "http://127.0.0.1:9/ is refused: 127.0.0.1:9 is not on the allow-list" in made.tasks.get().error
    told = Event.objects.get(type="browsing_refused").data
    assert (told["device"], told["address"]) == ("window", "http://127.0.0.1:9/")


def test_who_is_to_confirm_a_models_click_sees_the_page_and_the_model_reads_it_as_untrusted(
    engine, window, web, model  # noqa: F811
):  # fmt: skip
    device_change(window.pk, unasked={"tools": ["browser.open"]}, by="system")
    model(
        call("browser__open", url=web.address + "/"), call("observe"),
        call("confirm", tool="browser__click", arguments={"role": "button", "name": "Buy"}, why="It costs money."),
        call("finish", result="bought"),
    )  # fmt: skip
    seen: list[dict] = []

    def approve_once() -> bool:
        """In the middle of the run: pages end with the runner that holds the browser."""
        if not seen and WAITING():
            in_thread(_approve, seen)
        return found("constellations_constellation", "state IN ('COMPLETED', 'FAILED')")()

    engine.submit({"tasks": [{"task_id": "work", "device": "window", "description": "Buy it."}]})
    engine.run(approve_once)
    assert seen[0]["title"] == "Shop"
    assert 'button "Buy"' in seen[0]["tree"]
    assert Artifact.objects.filter(sha256=seen[0]["picture"]["sha256"]).exists()
    assert (Task.objects.get().result, Evidence.objects.get(tool="browser.click").success) == ("bought", True)
    told = next(str(row.added) for row in ModelCall.objects.order_by("number") if 'button "Buy"' in str(row.added))
    assert "untrusted" in told[: told.index('button "Buy"')]


def test_a_model_that_sees_is_shown_what_it_looks_at_and_its_row_has_the_digest(
    engine, window, web, provider  # noqa: F811
):  # fmt: skip
    """In both protocols of providers. The app agent is not visual, and sees none."""
    device_change(window.pk, unasked={"tools": ["browser.open"]}, by="system")
    answers = [
        (0, call("browser__open", url=web.address + "/")), (0, call("observe")),
        (1, call("delegate", name="buyer", instruction="Look.", app="shop", visual=False)),
        (0, call("browser__open", url=web.address + "/")), (0, call("observe")), (0, call("finish", result="seen")),
        (1, call("finish", result="a shop")),
    ]  # fmt: skip
    served = provider(*({"times": 1, "when": {"pictures": shown}, **answer} for shown, answer in answers))
    profile = served.profile
    model_profile_create(
        "eyes", provider=profile.provider, model=profile.model, base_url=profile.base_url, sees=True,
        purposes=["device_agent"], by="system",
    )  # fmt: skip
    made = engine.carry_out({"tasks": [{"task_id": "work", "device": "window", "description": "What is there?"}]})
    assert (made.state, made.tasks.get().result) == ("COMPLETED", "a shop")
    picture = Artifact.objects.get()
    assert served.model.asked[-1].pictures == (picture.sha256,)
    rows = [row for row in ModelCall.objects.all() if '"picture"' in json.dumps(row.added)]
    assert [picture.sha256 in json.dumps(row.added) for row in rows] == [True]
    assert len(json.dumps(rows[0].added)) < 5_000 < picture.size


def _approve(seen: list[dict]) -> None:
    approval = Approval.objects.get()
    seen.append(approval.observed)
    approval_decide(approval.pk, "approve", by="user:1", digest=approval.digest)


NEVER = {**use("wait", text="never", seconds=60), "timeout": 60}


def kill_chromium(window) -> list[int]:
    """The processes of the device's browser, which were ended."""
    found = [pid for pid in list_pids() if read_mark(pid) == (f"{instance_name()}-browser", window.pk)]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):  # gone with another one
            os.kill(pid, signal.SIGKILL)
    return found


def kill_while_waiting(window, web, killed: list[int]):  # noqa: F811
    """Ends a run with its graph. Chromium is killed when a page is waited for, and the page shows what it lacked from then."""

    def kill_once() -> bool:
        if not killed and found("agents_evidence", "tool = 'browser.wait'")():
            web.show("/", SHOP.replace("<p id=o>", "<p>never</p><p id=o>"))
            killed.extend(kill_chromium(window))
        return found("constellations_constellation", "state IN ('COMPLETED', 'FAILED')")()

    return kill_once


def lost_calls() -> list[str]:
    return list(Evidence.objects.filter(error_kind="lost").values_list("tool", flat=True))


def outcomes() -> list[str]:
    return list(Attempt.objects.order_by("number").values_list("outcome", flat=True))


def test_a_chromium_that_is_killed_is_a_lost_device_that_comes_back_and_the_task_is_tried_anew(
    engine, window, web  # noqa: F811
):  # fmt: skip
    killed: list[int] = []
    engine.submit(task(use("open", url=web.address + "/"), NEVER, on_lost="retry"))
    engine.run(kill_while_waiting(window, web, killed))
    assert killed
    moves = list(Transition.objects.filter(machine="device").order_by("id").values_list("event", flat=True))
    assert moves == ["dial", "accepted", "lost", "dial", "accepted"]
    assert lost_calls() == ["browser.wait"]
    assert (Task.objects.get().state, outcomes()) == ("COMPLETED", ["lost", "completed"])


def test_the_attempt_that_follows_a_lost_one_has_its_pages_again(engine, window, web):  # noqa: F811
    other = web.show("/other", "<!doctype html><title>Other</title><p>aside</p>")
    steps = [
        use("open", url=other, page="side"),
        use("open", url=web.address + "/"),
        NEVER,
        use("read", page="side", save="said"),
    ]
    engine.submit(task(*steps, on_lost="retry"))
    engine.run(kill_while_waiting(window, web, []))
    made = Task.objects.get()
    assert (made.state, made.result["said"]["content"], outcomes()) == ("COMPLETED", "aside", ["lost", "completed"])
    told = Event.objects.filter(type="page_reopened").values_list("data", flat=True)
    assert [each["address"] for each in told] == [f"main: {web.address}/"]  # the first step shows the other one itself


def test_a_look_that_is_lost_with_its_browser_loses_the_attempt(engine, window, web, monkeypatch):  # noqa: F811
    killed: list[int] = []
    look = ACTIONS["browser.look"]

    async def look_after_kill(call, desk, sites):
        if not killed:
            killed.extend(kill_chromium(window))
        return await look(call, desk, sites)

    monkeypatch.setitem(ACTIONS, "browser.look", look_after_kill)
    made = engine.carry_out(task(use("open", url=web.address + "/"), {"observe": True, "save": "seen"}, on_lost="retry"))
    assert killed
    assert (made.state, lost_calls(), outcomes()) == ("COMPLETED", ["browser.look"], ["lost", "completed"])
    assert 'button "Buy"' in made.tasks.get().result["seen"]["tree"]


def test_where_nothing_may_be_tried_anew_a_killed_chromium_fails_the_task(engine, window, web):  # noqa: F811
    engine.submit(task(use("open", url=web.address + "/"), NEVER, on_lost="fail", max_attempts=3))
    engine.run(kill_while_waiting(window, web, []))
    made = Task.objects.get()
    assert (made.state, outcomes()) == ("FAILED", ["lost"])
    assert "chromium has ended" in made.error


def test_a_model_whose_browser_was_killed_is_told_that_its_pages_are_gone_and_goes_on(
    engine, window, web, model  # noqa: F811
):  # fmt: skip
    device_change(window.pk, unasked={"tools": ["browser.open", "browser.wait", "browser.read"]}, by="system")
    opened = call("browser__open", url=web.address + "/")
    model(
        opened, call("browser__wait", text="never", seconds=60), opened, call("browser__read"),
        call("finish", result="read"),
    )  # fmt: skip
    engine.submit({"tasks": [{"task_id": "work", "device": "window", "description": "Read it.", "on_lost": "retry"}]})
    engine.run(kill_while_waiting(window, web, []))
    assert (Task.objects.get().state, Task.objects.get().result, outcomes()) == ("COMPLETED", "read", ["completed"])
    assert set(lost_calls()) == {"browser.wait"}
    stood = Transition.objects.filter(machine="tool_loop", event="resources_low").values_list("from_state", "reason")
    # A call to a browser that is not back yet would be lost as well.
    assert list(stood) == [("ErrorRecovery", "window is disconnected: chromium has ended")]
    told = [str(row.added) for row in ModelCall.objects.order_by("number") if "pages end with the browser" in str(row.added)]
    assert len(told) == 1


def test_the_example_reads_the_page_that_its_device_may_show(engine, window, web):  # noqa: F811
    """As it stands, but for the address: nothing here goes out of this machine."""
    text = (settings.BASE_DIR / "examples" / "browser" / "browse.yaml").read_text()
    assert text.count('"https://example.org/"') == 1
    engine.submit(text.replace("https://example.org/", web.address + "/"))
    engine.run()
    result = Task.objects.get().result
    assert result["heading"]["content"] == "Shop"
    assert 'heading "Shop"' in result["page"]["tree"]


def test_a_host_on_a_shell_has_an_app_agent_with_a_model_work_on_one_page_of_a_browser(
    engine, window, device, web, model  # noqa: F811
):  # fmt: skip
    device_change(window.pk, unasked={"tools": ["browser.open"]}, by="system")
    url = web.address + "/"
    model(
        call("delegate", name="buyer", instruction="Look at the shop.", device="window", app="shop", visual=False),
        call("browser__open", url=url, page="main"),
        call("browser__open", url=url),
        call("observe"),
        call("finish", result="seen"),
        call("finish", result="done"),
    )  # fmt: skip
    engine.submit({"tasks": [{"task_id": "work", "device": "laptop", "description": "See to it."}]})
    engine.run()
    assert (Task.objects.get().state, Task.objects.get().result) == ("COMPLETED", "done")
    rows = Evidence.objects.filter(loop__agent__device=window, tool__startswith="browser.").order_by("id")
    assert list(rows.values_list("tool", "success", "error_kind")) == [
        ("browser.open", False, "denied"), ("browser.open", True, ""), ("browser.look", True, ""),
    ]  # fmt: skip
    assert not Artifact.objects.exists()
    assert "Your app is the page shop" in str(ModelCall.objects.get(agent__device=window, number=1).added)
