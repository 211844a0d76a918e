"""Policies: what the rules say of a call, and how they are kept."""

import shlex

import pytest

from agents.access.permissions import why_refused
from agents.devices.workspace.paths import ResolvedPath
from agents.gates.policies import SEARCHED, Act, Judgement, Rule, Site, action_digest, judge_act, target_of
from agents.models import Event, Policy
from agents.patterns import LENGTH as PATTERN_LENGTH
from agents.patterns import pattern_fault
from agents.services import policies
from tests.agents.conftest import Rest, make_token

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]
DENY = Rule(tool="command", pattern=r"^rm ", decision="deny", note="nothing is removed here")
ASK = Rule(tool="*", decision="ask", critical=True, note="somebody looks first")
ALLOW = Rule(tool="command", pattern="^make", note="builds are fine")


def command(line):
    """A call of the tool `command`, from what its target is to be."""
    return Act("command", {"argv": shlex.split(line)})


LAPTOP = Site("laptop", ("lab", "own"))
# what the rules say


def test_a_call_that_no_rule_fits_is_allowed():
    assert judge_act([], [], command("ls"), LAPTOP) == Judgement("allow", False, "")
    assert judge_act([DENY], [DENY], command("ls"), LAPTOP).decision == "allow"


@pytest.mark.parametrize(
    ("rules", "target", "decision"),
    [
        ([ALLOW, ASK], "make test", "allow"),
        ([ASK, ALLOW], "make test", "ask"),
        ([ALLOW, DENY, ASK], "rm -r build", "deny"),
        ([ALLOW, DENY, ASK], "ls", "ask"),
    ],
)
def test_the_first_rule_that_fits_counts(rules, target, decision):
    assert judge_act(rules, [], command(target), LAPTOP).decision == decision


SHELL = "sh -c 'echo x; rm -rf \"$HOME\"'"


@pytest.mark.parametrize(
    ("rule", "target", "decision"),
    [
        (Rule(tool="command", pattern="echo"), "echo x", "allow"),
        (Rule(tool="command", pattern="echo"), SHELL, "ask"),
        (Rule(tool="command", pattern="^echo"), SHELL, "ask"),
        (Rule(tool="command", pattern="echo"), "/bin/bash -ec 'echo x; rm -rf y'", "ask"),
        (Rule(tool="command", pattern="^sh -c"), SHELL, "allow"),
        (Rule(tool="command"), SHELL, "allow"),
        (DENY, "rm -rf x", "deny"),
        (DENY, SHELL, "deny"),
        (DENY, "sh -c 'cd x && (rm -rf y)'", "deny"),
        (DENY, "sh -c 'echo rm'", "ask"),
        (DENY, "sh -c '! rm -r x'", "deny"),
        (DENY, "sh -c 'A=1 rm -r x'", "deny"),
        (DENY, "sh -c 'if true; then rm -r x; fi'", "deny"),
        (DENY, "env A=1 sh -c 'rm -r x'", "deny"),
        (DENY, "env 'A=1 2' rm -r x", "deny"),
        (DENY, "env echo rm", "ask"),
        (Rule(tool="command", pattern="echo"), "env A=1 sh -c 'echo x; rm -r y'", "ask"),
        (Rule(tool="command", pattern="echo"), "env A=1 echo x", "allow"),
        (DENY, "echo 'sh -c rm x'", "ask"),
        (Rule(tool="command", pattern="^sh -c", decision="deny"), SHELL, "deny"),
    ],
)
def test_what_a_shell_runs_is_judged_as_a_shells(rule, target, decision):
    assert judge_act([rule, ASK], [], command(target), LAPTOP).decision == decision


def test_the_command_of_a_shell_is_judged_whole_however_long_it_is():
    line = f"echo {'x' * 30_000}; rm -rf y"
    assert judge_act([DENY], [], Act("command", {"argv": ["sh", "-c", line]}), LAPTOP).decision == "deny"


@pytest.mark.parametrize(
    ("rules", "own", "expected"),
    [
        ([ALLOW], [ASK], Judgement("ask", True, ASK.note)),
        ([DENY], [Rule(decision="allow")], Judgement("deny", False, DENY.note)),
        ([ASK], [DENY], Judgement("deny", False, DENY.note)),
        ([Rule(decision="ask", note="theirs")], [Rule(decision="ask", note="own")], Judgement("ask", False, "theirs")),
        ([Rule(decision="ask", note="theirs")], [Rule(decision="ask", critical=True)], Judgement("ask", True, "")),
    ],
)
def test_a_task_can_only_tighten_what_the_installation_says(rules, own, expected):
    target = "rm -r build" if DENY in (*rules, *own) else "make"
    assert judge_act(rules, own, command(target), LAPTOP) == expected


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (Rule(label="lab", decision="deny"), True),
        (Rule(label="l?b", device="laptop", decision="deny"), True),
        (Rule(label="prod*", decision="deny"), False),
        (Rule(label="laptop", decision="deny"), False),
        (Rule(tool="write_*", decision="deny"), True),
        (Rule(tool="WRITE_*", decision="deny"), False),
        (Rule(tool="write", decision="deny"), False),
        (Rule(device="lap*", decision="deny"), True),
        (Rule(device="server?", decision="deny"), False),
        (Rule(pattern=r"\.env$", decision="deny"), True),
        (Rule(pattern="^.env$", decision="deny"), False),
        (Rule(tool="write_*", device="server", pattern="env", decision="deny"), False),
    ],
)
def test_a_rule_fits_when_tool_device_and_target_do(rule, fits):
    assert (judge_act([rule], [], Act("write_file", {"path": "config/.env", "content": ""}), LAPTOP).decision == "deny") is fits


def test_a_pattern_is_searched_in_all_of_a_long_target_and_beyond_that_nothing_is_allowed():
    rule = Rule(pattern="needle", decision="deny", note="found")
    long = Act("command", {"argv": ["echo", "x" * 100_000, "needle"]})
    assert judge_act([rule], [], long, LAPTOP) == Judgement("deny", False, "found")
    longer = Act("command", {"argv": ["echo", "x" * SEARCHED]})
    assert judge_act([rule], [], longer, LAPTOP).decision == "deny"
    assert "can be judged" in judge_act([rule], [], longer, LAPTOP).note
    assert judge_act([Rule(decision="allow")], [], longer, LAPTOP).decision == "allow"


def test_where_case_does_not_matter_to_files_it_does_not_to_patterns():
    rule = Rule(tool="read_file", pattern=r"^secret\.txt$", decision="deny")
    for any_case, decision in ((True, "deny"), (False, "allow")):
        act = Act("read_file", {"path": "SECRET.txt"}, lambda path, any_case=any_case: ResolvedPath(path, "", any_case))
        assert judge_act([rule], [], act, LAPTOP).decision == decision


@pytest.mark.parametrize(
    "arguments", [{"path": "a", "to": "secret"}, {"path": "secret", "to": "a"}, {"to": [{"x": "./secret"}]}]
)
def test_all_that_a_tool_is_given_is_judged(arguments):
    deny = Rule(pattern="^secret$", decision="deny")
    allow = Rule(pattern="^[a-r]$")
    assert judge_act([deny], [], Act("copy", arguments), LAPTOP).decision == "deny"
    assert judge_act([allow, ASK], [], Act("copy", arguments), LAPTOP).decision == "ask"
    assert judge_act([allow, ASK], [], Act("copy", {"path": "a", "to": "b"}), LAPTOP).decision == "allow"


def test_the_file_that_a_command_says_it_writes_is_judged():
    deny = Rule(pattern="^settings.ini$", decision="deny")
    assert judge_act([deny], [], Act("command", {"argv": ["make"]}, writes="./settings.ini"), LAPTOP).decision == "deny"


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("a(b", "no regular expression: missing ): a(b"),
        ("[", "missing ]"),
        ("(?=a)b", "no regular expression"),
        (r"(a)\1", "no regular expression"),
        ("x" * (PATTERN_LENGTH + 1), f"at most {PATTERN_LENGTH}"),
        ("", ""),
        (r"^rm\s+-r", ""),
    ],
)
def test_a_pattern_that_cannot_be_used_says_where_and_why(pattern, says):
    assert says in pattern_fault(pattern)
    assert bool(says) is bool(pattern_fault(pattern))


@pytest.mark.parametrize(
    ("tool", "arguments", "target"),
    [
        ("command", {"argv": ["rm", "-r", "two words"]}, "rm -r 'two words'"),
        ("command", {"argv": ["echo", 5]}, '{"argv":["echo",5]}'),
        ("command", {}, "{}"),
        ("write_file", {"path": "a/b.txt", "text": "x"}, "a/b.txt"),
        ("write_file", {"path": 5}, '{"path":5}'),
        ("fetch", {"url": "https://example.org", "argv": ["x"]}, '{"argv":["x"],"url":"https://example.org"}'),
    ],
)
def test_the_target_of_a_call_is_what_it_is_about(tool, arguments, target):
    assert target_of(tool, arguments) == target


def test_an_actions_digest_is_that_of_exactly_this_action():
    action = {"tool": "command", "arguments": {"argv": ["ls"], "cwd": "/"}}
    assert action_digest(action) == action_digest({"arguments": {"cwd": "/", "argv": ["ls"]}, "tool": "command"})
    assert len(action_digest(action)) == 64
    assert action_digest(action) != action_digest({**action, "arguments": {"argv": ["ls "], "cwd": "/"}})


# how they are kept


@pytest.fixture
def keeper(admin_user):
    return Rest(admin_user)


def make(**fields):
    return policies.policy_create(by="system", **{"decision": "ask", **fields})


def problem_keys(answer):
    return {each["key"] for each in answer.json()["problems"]}


def test_a_policy_is_kept_in_the_system_stream(keeper, admin_user, verified):
    answer = keeper.post("/api/policies/", {"tool": "command", "pattern": "^rm ", "decision": "deny", "note": "no"})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["order"], made["device"], made["critical"]) == (100, "*", False)
    changed = keeper.patch(f"/api/policies/{made['id']}/", {"decision": "ask", "critical": True})
    assert (changed.status_code, changed.json()) == (200, {**made, "decision": "ask", "critical": True})
    assert keeper.get(f"/api/policies/{made['id']}/").json() == changed.json()
    assert keeper.delete(f"/api/policies/{made['id']}/").status_code == 204
    assert not Policy.objects.exists()
    events = Event.objects.filter(stream__kind="system").order_by("seq")
    assert [event.type for event in events] == ["policy_created", "policy_changed", "policy_deleted"]
    assert {event.by for event in events} == {f"user:{admin_user.pk}"}
    assert events[2].data["del"] == {"policy": [made["id"]]}
    assert events[2].data["decision"] == "ask"


def test_a_change_to_what_is_so_already_is_not_recorded(keeper, verified):
    made = make(note="why")
    before = Event.objects.count()
    assert keeper.patch(f"/api/policies/{made.pk}/", {"note": "why", "order": 100}).status_code == 200
    assert Event.objects.count() == before


def test_policies_are_listed_in_the_order_in_which_they_count(rest):
    late, early, other = make(order=200), make(order=-5), make(order=-5)
    page = rest.get("/api/policies/").json()
    assert [row["id"] for row in page["results"]] == [early.pk, other.pk, late.pk]
    assert page["next"] is None


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"pattern": "a(b"}, "pattern"),
        ({"pattern": "x" * (PATTERN_LENGTH + 1)}, "pattern"),
        ({"tool": ""}, "tool"),
        ({"device": "  "}, "device"),
        ({"device": "x" * 81}, "device"),
        ({"label": ""}, "label"),
        ({"order": 1.5}, "order"),
        ({"order": True}, "order"),
        ({"order": 10**7}, "order"),
        ({"critical": "yes"}, "critical"),
        ({"critical": None}, "critical"),
        ({"decision": "maybe"}, "decision"),
        ({"note": "x" * 501}, "note"),
        ({"id": 5}, "id"),
    ],
)
def test_a_wrong_policy_names_the_place(keeper, body, key):
    made = make(note="kept")
    before = Event.objects.count()
    created = keeper.post("/api/policies/", {"decision": "ask", **body})
    changed = keeper.patch(f"/api/policies/{made.pk}/", body)
    assert (created.status_code, problem_keys(created)) == (400, {key})
    assert (changed.status_code, problem_keys(changed)) == (400, {key})
    assert Event.objects.count() == before


def test_a_regex_that_does_not_compile_says_what_is_wrong(keeper):
    answer = keeper.post("/api/policies/", {"decision": "deny", "pattern": "a(b"})
    assert answer.json()["code"] == "policy_rejected"
    assert "pattern: it is no regular expression: missing )" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("fields", "key"),
    [({"colour": "red"}, "colour"), ({"tool": 5}, "tool"), ({"pattern": None}, "pattern"), ({"critical": 1}, "critical")],
)
def test_the_service_checks_what_no_serializer_has_seen(fields, key):
    with pytest.raises(policies.PolicyRejected) as refused:
        make(**fields)
    assert [each["key"] for each in refused.value.problems] == [key]


def test_a_decision_must_be_given(keeper):
    assert problem_keys(keeper.post("/api/policies/", {"tool": "command"})) == {"decision"}


def test_there_are_only_so_many(keeper, monkeypatch):
    monkeypatch.setattr(policies, "POLICIES", 2)
    make()
    make()
    answer = keeper.post("/api/policies/", {"decision": "ask"})
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_policies")
    assert Policy.objects.count() == 2


def test_a_policy_that_is_not_there_is_404(keeper):
    assert keeper.get("/api/policies/7/").status_code == 404
    assert keeper.patch("/api/policies/7/", {"note": "x"}).status_code == 404
    assert keeper.delete("/api/policies/7/").status_code == 404
    with pytest.raises(policies.NoSuchPolicy, match="no policy 7"):
        policies.policy_delete(7, by="system")


def test_all_roles_read_policies_and_only_admins_keep_them(viewer, operator, user):
    made = make()
    for reader, status in ((viewer, 200), (operator, 200), (user, 403)):
        assert Rest(reader).get("/api/policies/").status_code == status
        assert Rest(reader).get(f"/api/policies/{made.pk}/").status_code == status
    for other in (viewer, operator, user):
        assert Rest(other).post("/api/policies/", {"decision": "ask"}).status_code == 403
        assert Rest(other).patch(f"/api/policies/{made.pk}/", {"note": "x"}).status_code == 403
        assert Rest(other).delete(f"/api/policies/{made.pk}/").status_code == 403


def test_a_token_keeps_policies_with_the_scope_admin_only(admin_user):
    made = make()
    _, weak = make_token(admin_user, "read", "operate", "edit", "approve")
    _, strong = make_token(admin_user, "admin")
    assert Rest(token=weak).delete(f"/api/policies/{made.pk}/").json()["detail"] == "the token lacks the scope admin"
    assert why_refused(admin_user, None, "govern") == ""
    assert Rest(token=strong).delete(f"/api/policies/{made.pk}/").status_code == 204


@pytest.mark.parametrize("count", [1, 40])
def test_the_list_costs_the_same_queries_however_long_it_is(rest, count, django_assert_max_num_queries):
    for _ in range(count):
        make()
    with django_assert_max_num_queries(4):
        assert len(rest.get("/api/policies/").json()["results"]) == count
