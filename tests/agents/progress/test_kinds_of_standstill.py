"""Each kind of standstill is found, the work that looks like it is not, and the page shows what a verdict says."""

from dataclasses import replace

import pytest
from django.conf import settings as django_settings

from agents.progress.calls import kind_of_call
from agents.progress.evidence import Control, Evidence, message_of
from agents.progress.settings import Settings
from agents.progress.shapes import shape_of
from agents.progress.state import State
from agents.progress.tracker import observe_item, suspicion
from tests.agents.progress.test_rules import bash, edit, fails, first, look, poll


def call(tool: str, target: str, says: str = "", **fields) -> Evidence:
    return Evidence(tool, target, call=target, outcome=says or f"answer to {target}", **fields)


def told(tool: str, target: str, text: str, **fields) -> Evidence:
    """A call whose answer is known: two texts are two outcomes, however alike."""
    return call(tool, target, text, shape=shape_of(text), **fields)


def found(target: str) -> Evidence:
    """A look that is known to have found nothing."""
    return Evidence("bash", target, call=target, shape="")


def said(text: str) -> Evidence:
    return replace(message_of(text), shape=shape_of(text))


ORDER = "Please unpack /data/savings.zip"
STOOD_STILL = {
    "same_target_error": [fails("main.go", "old_string not found")] * 3,
    "same_tool_error": [fails(f"query{letter}", "401 Unauthorized", "search", call=letter) for letter in "abcdef"],
    "same_failure": [
        one for n in range(5) for one in (edit("a.py", str(n), str(n + 1)), fails("pytest", "1 failed", "bash", kind="test"))
    ],
    "oscillation": [edit("a.go", "0", "1"), edit("a.go", "1", "0")] * 2,
    "exact_repeat": [bash("gh api pulls")] * 4,
    "same_deed": [call("browser", "clicked 'Month'", f"page {n}") for n in range(4)],
    "cycle": [bash("ls a"), bash("cat b")] * 3,
    "endless_poll": [poll("queued"), poll("running")] + [poll("running")] * 8,
    "plan_again": [call("TodoWrite", "", f"plan {n}") for n in range(4)],
    "same_order": [call("Task", f"{ORDER} {how}", f"report {how}") for how in ("now", "again", "once more", "by hand")],
    "same_answer": [look(f"pattern{letter}", "906 bytes", "grep") for letter in "abcdefgh"],
    "going_round": [
        fails(f"SELECT name FROM battles WHERE {letter} = 1", f"no column {letter}", "sql", call=letter) for letter in "abcdefg"
    ],
    "no_novelty": [look(f"known{n % 7}", f"content {n % 7}", "unknown_tool") for n in range(17)],
    "same_message": [said(f"I will now open the configuration and look for the setting{end}") for end in (".", "!", " ...")],
    "only_talk": [said(f"{word} {word}s") for word in ("alpha", "bravo", "carol", "delta", "eagle", "frank")],
    "compactions": [bash("ls")] + [Control("compaction")] * 3,
}
"""Rule > the smallest run in which it speaks."""


def verdict_of(items, settings: Settings | None = None):
    return first(items, settings or Settings())


@pytest.mark.parametrize("rule", STOOD_STILL)
def test_each_kind_is_found_with_its_last_item_and_not_before(rule):
    settings = Settings.of({"stuck_threshold": 0}) if rule == "no_novelty" else Settings()
    items = STOOD_STILL[rule]
    assert verdict_of(items, settings).rule == rule
    assert verdict_of(items[:-1], settings) is None


@pytest.mark.parametrize("rule", STOOD_STILL)
def test_the_page_shows_what_the_verdict_of_each_kind_says(rule):
    settings = Settings.of({"stuck_threshold": 0}) if rule == "no_novelty" else Settings()
    page = (django_settings.BASE_DIR / "docs" / "stuck.md").read_text()
    assert f"| `{rule}` | {verdict_of(STOOD_STILL[rule], settings).sentence} | " in page


BENIGN = {
    "a failure that moves": [
        one
        for n in range(9)
        for one in (edit("a.py", str(n), str(n + 1)), fails("pytest", f"{n // 2} failed", "bash", kind="test"))
    ],
    "paging": [call("browser", "scrolled down one page", f"page {n}") for n in range(20)],
    "one file after another": [call("bash", f"openssl verify src/part{n}.pem", "OK") for n in range(9)],
    "one package after another": [bash(f"pip install {name}") for name in ("pytz", "asgiref", "sqlparse", "wrapt", "attrs")],
    "a check after each change": [
        one for n in range(9) for one in (bash(f"cat > a.py <<'EOF'\nline {n}\nEOF", None), bash("npx prettier --write src"))
    ],
    "bisecting": [
        one for n in range(8) for one in (fails("go test", "1 failed", "bash"), call("bash", "git bisect bad", f"c{n}"))
    ],
    "a plan that is carried out": [
        one for n in range(9) for one in (call("TodoWrite", "", f"plan {n}"), edit(f"f{n}", "0", f"{n}"))
    ],
    "different orders": [call("Task", f"Please review src/part{n}.py and report", f"report {n}") for n in range(9)],
    "growing pauses": [
        one for n in range(9) for one in (bash(f"sleep {2**n}", None), fails("curl localhost/health", "refused", "bash"))
    ],
    "a thought before each step": [one for n in range(9) for one in (call("think", "", "OK."), look(f"f{n}"))],
    "a habit": [one for n in range(12) for one in (bash("pwd"), look(f"f{n}"))],
    "greps that find nothing": [found(f"grep -rn {name} src") for name in ("alphabet", "bracket", "cabinet", "dragon")],
    "talk with a person": [one for n in range(9) for one in (said(f"answer {n}"), Control("user"))],
    "compactions with work between": [one for n in range(9) for one in (Control("compaction"), look(f"f{n}"))],
    "a poll that moves slowly": [poll(str(n // 8)) for n in range(80)],
    "retries that the plan ordered": [replace(fails("make", "broken", "bash"), ordered=True)] * 12,
    "exit codes that say no": [fails(f"grep {n} file{n}.txt", f"e{n}", "bash", call=str(n)) for n in range(3)],
}


@pytest.mark.parametrize("work", BENIGN)
def test_work_that_looks_like_a_loop_is_none(work):
    assert verdict_of(BENIGN[work]) is None


def test_the_same_answer_is_seen_behind_times_ids_and_the_order_of_lines():
    texts = [f"checked at 10:0{n}:11 in {n}.2s\nrequest a8f3e1c9d{n}\nno reviews" for n in range(4)]
    assert verdict_of([told("mcp__github__get_reviews", "pull 7", text) for text in texts]).rule == "exact_repeat"


def test_a_look_whose_counter_moves_has_twice_the_time():
    items = [told("read_page", "job 7", f"{n} of 90 done") for n in range(1, 12)]
    assert verdict_of(items[:6]) is None
    assert verdict_of(items).rows[-1] == 7


def test_a_question_in_other_words_whose_answer_stays_goes_round():
    pipes = ("", " | sort", " | sort -u", " | uniq", " | head -3", " | tail -3", " | cat")
    verdict = verdict_of([found(f"grep -rn load_cache .{pipe}") for pipe in pipes])
    assert verdict.rule == "going_round"
    assert "calls in other words" in verdict.sentence


def test_of_a_look_that_nobody_saw_the_answer_of_nothing_is_known():
    pipes = ("", " | sort", " | sort -u", " | uniq", " | head -3", " | tail -3", " | cat")
    assert verdict_of([Evidence("bash", f"grep -rn load_cache .{pipe}", call=pipe) for pipe in pipes]) is None


def test_a_thought_between_two_failures_excuses_nothing():
    thought = call("think", "", "OK.")
    items = [one for _ in range(3) for one in (thought, fails("make", "broken", "bash", kind="test"))]
    assert verdict_of(items).rule == "same_target_error"


def test_three_nudges_that_lead_to_no_call_are_unanswered():
    items = [one for word in ("alpha", "bravo", "carol", "delta") for one in (said(f"{word} {word}s"), Control("nudge"))]
    assert verdict_of(items).rule == "only_talk"


def test_a_tool_may_be_given_its_kind_by_the_settings():
    settings = Settings.of({"tool_kinds": ["grab_page=poll", "mcp__x__shout=shell"]})
    assert [kind_of_call("grab_page", "news", one) for one in (Settings(), settings)] == ["tool", "poll"]
    assert [kind_of_call("mcp__x__shout", "pytest -q", one) for one in (Settings(), settings)] == ["tool", "test"]


@pytest.mark.parametrize("entry", ["grab_page", "=look", "grab_page=glance"])
def test_a_kind_that_is_none_is_refused(entry):
    with pytest.raises(ValueError, match="tool_kinds"):
        Settings.of({"tool_kinds": [entry]})


def test_what_is_not_yet_a_verdict_is_a_suspicion():
    state = State()
    for item in STOOD_STILL["same_target_error"][:2]:
        state, verdict = observe_item(state, item)
    suspected = suspicion(State.from_json(state.to_json()))
    assert verdict is None
    assert (suspected.rule, suspected.score, suspected.rows) == ("same_target_error", 0.667, (1, 2))
    state, verdict = observe_item(state, STOOD_STILL["same_target_error"][2])
    assert (verdict.rule, suspicion(state)) == ("same_target_error", None)
    assert suspicion(observe_item(State(), look("a"))[0]) is None


def test_what_a_plan_lists_to_be_said_is_no_talk_of_its_agent():
    lines = [replace(said(f"Part {number} begins."), ordered=True) for number in range(40)]
    assert verdict_of(lines) is None


def test_a_plan_that_lists_the_very_same_words_again_is_told_so():
    line = replace(said("Part 1 begins."), ordered=True)
    assert verdict_of([line] * 3).rule == "same_message"


QUESTIONS = (
    "how do I use {}",
    "{} usage example",
    "what does {} do",
    "explain {}",
    "parameters of {}",
    "how to call {}",
    "{} guide",
)


def passage(question: str, name: str) -> Evidence:
    text = f"[retrieved 10:{len(question):02}:00]\nOne passage: {name} replaces an older one"
    return told("mcp__docs__get_library_docs", question.format(name), text)


def test_questions_about_one_thing_that_get_one_answer_go_round():
    assert verdict_of([passage(question, "merge_mailer") for question in QUESTIONS]).rule == "going_round"


def test_a_question_about_one_thing_after_another_does_not():
    assert verdict_of([passage("how do I use {}", f"merge_{letter}") for letter in "abcdefg"]) is None


def test_a_pause_and_a_look_in_one_command_is_a_poll_and_no_deed():
    line = "sleep 10 && docker compose ps"
    kind = kind_of_call("bash", line, Settings())
    answers = [f"{healthy} of 5 are healthy" for healthy in (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5)]
    assert kind == "poll"
    assert verdict_of([told("bash", line, answer, kind=kind) for answer in answers]) is None
