"""What people say of recorded runs is kept, shown, and what traces are measured by."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from agents.masks.values import mask_text
from agents.models import Event, Loop
from agents.services.labels import REASON_LENGTH, LabelRejected, NoSuchLoop, loop_label
from agents.services.sessions import session_create
from tests.agents.conftest import add_agents, add_evidence, add_loop

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


@pytest.fixture
def loop(operator) -> int:
    """A loop with three actions, a message of a person between the first two, and a fourth under way."""
    session = session_create(operator, "s", by="system")
    loop = add_loop(add_agents(session)[0], session)
    under_way = {"number": 5, "success": None, "ended_at": None}
    rows = [{"number": 1}, {"number": 2, "kind": "user"}, {"number": 3}, {"number": 4, "kind": "poll"}, under_way]
    add_evidence(loop, session, *rows)
    return loop


def said(*words: str) -> str:
    out = StringIO()
    call_command("stuck_label", *words, stdout=out)
    return out.getvalue().strip()


def exported(**options) -> list[dict]:
    out = StringIO()
    call_command("trace_export", stdout=out, **options)
    return json.loads(out.getvalue())


def test_a_label_is_kept_with_its_author_and_told_by_an_event(loop, operator):
    assert said(str(loop), "--stuck", "--since", "3", "--by", "operator", "--reason", "the same again") == (
        f"loop {loop} is labelled: stuck since row 3, by operator"
    )
    label = Loop.objects.get().label
    assert {**label, "at": None} == {
        "stuck": True, "since": 3, "reason": "the same again", "by": f"user:{operator.pk}", "at": None,
    }  # fmt: skip
    event = Event.objects.get(type="loop_labelled")
    assert (event.by, event.data["set"]["loop"][str(loop)]["label"]) == (f"user:{operator.pk}", label)


def test_the_last_word_counts(loop, operator):
    loop_label(loop, stuck=True, since=1, by="user:1")
    assert said(str(loop), "--not-stuck", "--by", "operator") == f"loop {loop} is labelled: not stuck, by operator"
    assert (Loop.objects.get().label["stuck"], Loop.objects.get().label["since"]) == (False, None)


def test_a_trace_is_what_a_person_says_before_it_is_what_the_rules_said(loop):
    (guessed,) = exported()
    assert (guessed["expected_stuck"], guessed["detect_by"], guessed["labelled"]) == (False, None, False)
    assert exported(labelled=True) == []
    loop_label(loop, stuck=True, since=4, by="user:1")
    (trace,) = exported(labelled=True)
    assert (trace["expected_stuck"], trace["detect_by"], trace["labelled"]) == (True, 4, True)
    loop_label(loop, stuck=False, by="user:1")
    (trace,) = exported()
    assert (trace["expected_stuck"], trace["detect_by"], trace["labelled"]) == (False, None, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["999", "--not-stuck", "--by", "operator"], "there is no tool loop 999"),
        (["LOOP", "--not-stuck", "--by", "nobody"], "there is no user nobody"),
        (["LOOP", "--stuck", "--by", "operator"], "an agent that was stuck was so since some row of its evidence"),
        (["LOOP", "--not-stuck", "--since", "1", "--by", "operator"], "an agent that was not stuck was so since no row"),
        (["LOOP", "--stuck", "--since", "2", "--by", "operator"], "row 2 is no action of this loop that has ended"),
        (["LOOP", "--stuck", "--since", "5", "--by", "operator"], "the last one is 4"),
        (["LOOP", "--by", "operator"], "one of the arguments --stuck --not-stuck is required"),
        (["LOOP", "--stuck", "--not-stuck", "--by", "operator"], "not allowed with argument"),
        (["LOOP", "--not-stuck"], "the following arguments are required: --by"),
        (["x", "--not-stuck", "--by", "operator"], "invalid int value"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence_and_nothing_is_written(loop, words, why):
    with pytest.raises(CommandError, match=why):
        said(*[str(loop) if word == "LOOP" else word for word in words])
    assert Loop.objects.get().label is None


def test_a_reason_is_bounded_and_no_mask(loop):
    with pytest.raises(LabelRejected, match="has 501 characters, at most 500"):
        loop_label(loop, stuck=False, reason="x" * (REASON_LENGTH + 1), by="user:1")
    with pytest.raises(LabelRejected, match="in the place of a secret"):
        loop_label(loop, stuck=False, reason=mask_text("ghp_" + "a1" * 18), by="user:1")
    with pytest.raises(NoSuchLoop, match="there is no tool loop 7"):
        loop_label(7, stuck=False, by="user:1")


def test_a_trace_without_an_action_says_so(operator):
    session = session_create(operator, "s", by="system")
    loop = add_loop(add_agents(session)[0], session)
    with pytest.raises(LabelRejected, match="the last one is none"):
        loop_label(loop, stuck=True, since=1, by="user:1")


# In the admin


def page_of(loop: int) -> str:
    return reverse("admin:agents_loop_change", args=[loop])


def staff(user) -> Client:
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


def test_who_operates_labels_a_run_in_the_admin(loop, operator):
    client = staff(operator)
    assert client.post(page_of(loop), {"was": "stuck", "since": "3", "because": "so"}).status_code == 302
    label = Loop.objects.get().label
    assert (label["stuck"], label["since"], label["by"]) == (True, 3, f"user:{operator.pk}")
    page = client.get(page_of(loop)).content.decode()
    assert '<option value="stuck" selected>' in page
    assert "stuck since row 3" in client.get(reverse("admin:agents_loop_changelist")).content.decode()
    assert client.post(page_of(loop), {"was": "stuck", "since": "3", "because": "so"}).status_code == 302
    assert Event.objects.filter(type="loop_labelled").count() == 1  # the same again is nothing new


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"was": "stuck", "since": ""}, "an agent that was stuck was so since some row"),
        ({"was": "stuck", "since": "2"}, "row 2 is no action of this loop"),
        ({"was": "", "because": "well"}, "say whether the agent was stuck"),
        ({"was": "stuck", "since": "many"}, "Enter a whole number."),
    ],
)
def test_the_admin_says_what_is_wrong_with_a_label(loop, operator, sent, why):
    answer = staff(operator).post(page_of(loop), sent)
    assert why in answer.content.decode()
    assert Loop.objects.get().label is None


def test_who_only_looks_labels_nothing_in_the_admin(viewer):
    session = session_create(viewer, "s", by="system")
    loop = add_loop(add_agents(session)[0], session)
    client = staff(viewer)
    page = client.get(page_of(loop))
    assert (page.status_code, b'name="was"' in page.content) == (200, False)
    assert client.post(page_of(loop), {"was": "free"}).status_code == 403
    assert Loop.objects.get().label is None
