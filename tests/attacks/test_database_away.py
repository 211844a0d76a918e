"""Every connection to PostgreSQL is lost, and none is to be had for a while: all goes on, and rows say what happened."""

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import psycopg
import pytest
from django.conf import settings

from tests.attacks.test_no_room import OPEN, STARTED, SUBMIT, health_of
from tests.project.installation import REPAIR_S, START_S, Installation, a_database, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite has no connections to lose"),
]
AWAY_S = 3.0
"""Below the six seconds after which a runner without a database lets go of what runs."""
BACK_S = 4.0
"""From the database's return to the next start (the issue's own limit; 0.5 s on an idle machine)."""
TOKEN = """
from agents.models import Token
from project.demo.demo import demo_user
print(Token.objects.create(demo_user(), scopes=["read"])[1])
"""


@pytest.fixture(scope="module")
def serving(tmp_path_factory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("installation")
    with a_database(folder) as url:
        installation = Installation(folder, url)
        assert installation.manage("migrate", "-v", "0").returncode == 0
        installation.start()
        try:
            installation.until(installation.is_up, START_S)
            yield installation
        finally:
            installation.end()


@contextmanager
def no_connections(installation: Installation) -> Iterator[None]:
    """Inside, nobody has or gets a connection to the installation's database."""
    base, _, name = installation.url.rpartition("/")
    with closing(psycopg.connect(f"{base}/postgres", autocommit=True)) as server:
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            yield
        finally:
            server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


class Reader(threading.Thread):
    """Follows a session by server-sent events, and comes back whenever it is cut off."""

    def __init__(self, installation: Installation, token: str, session: int):
        super().__init__(daemon=True)
        self.url = f"http://127.0.0.1:{installation.port}/api/sessions/{session}/stream/"
        self.token, self.seqs, self.last = token, list[int](), 0
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            headers = {"Authorization": f"Bearer {self.token}", "Last-Event-ID": str(self.last)}
            with (
                suppress(OSError),
                urllib.request.urlopen(urllib.request.Request(self.url, headers=headers), timeout=20) as answer,
            ):
                for line in answer:
                    if line.startswith(b"id: "):
                        self.last = int(line[4:])
                        self.seqs.append(self.last)
            self.stopped.wait(0.1)


def test_all_goes_on_after_the_loss_of_every_connection(serving):
    token = serving.manage("shell", "-v", "0", "-c", TOKEN).stdout.split()[-1]
    assert serving.manage("shell", "-v", "0", "-c", SUBMIT.replace("sleep 0.1", "sleep 0.3")).returncode == 0
    session = serving.rows("SELECT max(id) FROM agents_session")[0][0]
    reader = Reader(serving, token, session)
    reader.start()
    serving.until(lambda: serving.rows(STARTED)[0][0] > 20, START_S)
    with no_connections(serving):
        began = time.monotonic()
        serving.until(lambda: health_of(serving)["status"] == "error", REPAIR_S)
        until(lambda: time.monotonic() - began > AWAY_S, REPAIR_S, lambda: "")
        back = time.time()
    assert health_of(serving)["status"] in ("ok", "no_runner")
    serving.until(lambda: serving.rows(OPEN) == [(0,)], START_S)

    starts = [at.timestamp() for (at,) in serving.rows("SELECT started_at FROM constellations_attempt")]
    assert min(at for at in starts if at > back) - back < BACK_S
    assert serving.rows("SELECT outcome, count(*) FROM constellations_attempt GROUP BY outcome") == [("completed", 80)]
    assert [serving.count(name) for name in ("web", "jobs", "runners")] == [1, 1, 1]

    head = serving.rows(f"SELECT head FROM agents_stream WHERE id = {session}")[0][0]
    serving.until(lambda: reader.last == head, REPAIR_S)
    reader.stopped.set()
    assert reader.seqs == list(range(reader.seqs[0], head + 1))

    told = serving.rows(
        "SELECT data FROM agents_event e JOIN agents_stream s ON s.id = stream_id WHERE type = 'outage' AND kind = 'system'"
    )
    who = [data["who"] for (data,) in told]
    assert sum(name.startswith("runner ") for name in who) == 2
    assert "up" in who
    assert all(AWAY_S - 1 < data["lasted_s"] < REPAIR_S and data["since"] for (data,) in told)
    noted = serving.rows(f"SELECT data FROM agents_event WHERE type = 'outage' AND stream_id = {session}")
    assert [set(data) for (data,) in noted] == [{"cause", "lasted_s"}]
    checked = serving.manage("verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_jobs_and_the_watchdog_work_afterwards(serving):
    """A job that is asked for after the outage is done; nothing was started again."""
    ended = "SELECT count(*) FROM django_q_task"
    with no_connections(serving):
        serving.until(lambda: health_of(serving)["status"] == "error", REPAIR_S)
    # No canary: the rows of those are removed as soon as one of the watchdog's own comes back.
    job = "from django_q.tasks import async_task; async_task('agents.jobs.ensure_runners', task_name='after', cluster='jobs')"
    assert serving.manage("shell", "-v", "0", "-c", job).returncode == 0
    serving.until(lambda: serving.rows(f"{ended} WHERE name = 'after' AND success")[0][0] == 1, REPAIR_S)
    assert [serving.count(name) for name in ("web", "jobs", "runners")] == [1, 1, 1]
