"""Waiting: for a server, a job, a log, a person."""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session
from tests.agents.progress.generated.work.changing import change_many_files
from tests.agents.progress.generated.work.checking import check_again_after_each_change

WORK = Variants()


@WORK.of("growing_pauses")
def try_until_a_server_is_up(session: Session) -> Acts:
    port, pause = session.number(3000, 9000), 1
    for _ in session.times(4, 7):
        session.shell(f"curl -s localhost:{port}/health", f"curl: (7) Failed to connect to localhost port {port}", code=7)
        session.shell(f"sleep {pause}", "")
        pause *= 2
        yield
    session.shell(f"curl -s localhost:{port}/health", f'{{"status": "up", "at": "{session.texts.clock()}"}}')
    yield from check_again_after_each_change(session)


@WORK.of("growing_pauses")
def look_less_and_less_often(session: Session) -> Acts:
    run, pause = session.random.randrange(10**6, 10**7), session.pick(5, 10)
    for _ in session.times(4, 6):
        session.shell(f"sleep {pause}", "")
        session.shell(f"gh run view {run}", f"run {run}: queued")
        pause *= 2
        yield
    session.shell(f"gh run view {run}", f"run {run}: completed, 14 jobs succeeded")


@WORK.of("watching")
def watch_a_log_that_grows(session: Session) -> Acts:
    log, lines = f"/var/log/{session.name()}.log", [session.name()]
    for _ in session.times(6, 14):
        lines += [f"{session.texts.clock()} {session.name()} done" for _ in session.times(1, 4)]
        session.shell(f"sleep {session.pick(5, 10)}", "") if session.chance(0.6) else None
        session.shell(f"tail -n 5 {log}", "\n".join(lines[-5:]))
        yield


@WORK.of("watching")
def poll_a_job_that_moves(session: Session) -> Acts:
    """The answer stays for up to five looks, then moves."""
    tool, job = session.start_job()
    for step in session.times(4, 8):
        name = session.name()
        for _ in session.times(1, 5):
            session.call(tool, job, f"{job}: step {step} ({name}) is running")
            yield
    session.call(tool, job, f"{job}: finished, exit code 0")


@WORK.of("waiting_person")
def talk_with_a_person(session: Session) -> Acts:
    for _ in session.times(5, 12):
        session.say(f"May I {session.name()} for your {session.name()}? Please answer yes or no.")
        session.control("user")
        if session.chance(0.4):
            session.call("get_order_details", session.name(), session.texts.json_page([session.name()]))
        yield


@WORK.of("waiting_person")
def wait_for_an_approval(session: Session) -> Acts:
    request, pause = f"request-{session.texts.identifier(4)}", 30
    session.say(f"I have asked for the approval of {request} and wait for it.")
    for _ in session.times(3, 5):
        session.shell(f"sleep {pause}", "")
        session.call("mcp__approvals__get_status", request, f"{request}: waiting for a person")
        pause *= 2
        yield
    session.control("user")
    session.call("mcp__approvals__get_status", request, f"{request}: approved")
    yield from change_many_files(session)
