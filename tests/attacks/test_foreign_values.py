"""What somebody has put into the cache or into the tables of the queue is never run: no pickle, no function by its name."""

import base64
import os
import pickle
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ, Schedule, Task
from django_q.monitor import save_task
from django_q.scheduler import scheduler
from redis import Redis
from redis.exceptions import RedisError

from agents import jobs
from agents.engine.summon import queue_of
from tests.agents.conftest import Rest

REDIS = "redis://127.0.0.1:6379/13"
LOOK = """
import django
django.setup()
from django.core.cache import cache
from django_q.conf import Conf
from django_q.status import Stat, Status
for key in ("planted", Conf.Q_STAT):
    try:
        print("read", cache.get(key))
    except ValueError as error:
        print("refused", type(error).__name__)
cache.delete("planted")
print(cache.add("planted", 1, 60), cache.incr("planted"), cache.get("planted"))
cache.delete_many(["planted", Conf.Q_STAT])
"""


class Planted:
    """Whoever unpickles it writes a file."""

    def __init__(self, written: Path):
        self._written = written

    def __reduce__(self):
        return os.mkdir, (str(self._written),)


@pytest.fixture
def redis():
    client = Redis.from_url(REDIS, socket_connect_timeout=1)
    try:
        client.ping()
    except RedisError:
        pytest.skip("no Redis at 127.0.0.1:6379")
    yield client
    client.delete("orrery:1:planted", "orrery:1:check", "orrery:1:django_q:jobs:cluster")
    client.close()


def in_a_process(*argv: str) -> str:
    env = {**os.environ, "REDIS_URL": REDIS, "DJANGO_SETTINGS_MODULE": "project.settings"}
    done = subprocess.run([sys.executable, *argv], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.attack
def test_a_pickle_in_the_cache_is_not_unpickled(redis, tmp_path):
    written = tmp_path / "written"
    for key in ("planted", "check", "django_q:jobs:cluster"):
        redis.set(f"orrery:1:{key}", pickle.dumps(Planted(written)))
    in_a_process("manage.py", "check")
    said = in_a_process("-c", LOOK)
    assert not written.exists()
    assert said.split("\n")[:3] == ["refused JSONDecodeError"] * 2 + ["True 2 2"]


@pytest.fixture
def ended(tmp_path) -> Task:
    """A job that has ended, in whose row somebody has put pickles."""
    now = timezone.now()
    row = Task.objects.create(id="a" * 32, name="canary", func="f", started=now, stopped=now, success=False, result="x")
    pickled = base64.b64encode(pickle.dumps(Planted(tmp_path / "written"))).decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_q_task SET args = %s, kwargs = %s, result = %s", [pickled] * 3)
    return row


@pytest.mark.django_db(transaction=True)
def test_a_pickle_in_the_row_of_a_job_is_not_unpickled(ended, tmp_path):
    assert [row.result for row in Task.objects.all()] == [None]
    root = Rest(User.objects.create_superuser("root"))
    for path in ("failure/", f"failure/{ended.pk}/change/"):
        assert root.client.get(f"/admin/django_q/{path}").status_code == 200
    again = {"id": ended.pk, "name": "canary", "func": "f", "stopped": timezone.now(), "success": True, "result": 1}
    save_task(again, get_broker())  # as the cluster does when a job of this id ends
    assert Task.objects.get().success
    assert not (tmp_path / "written").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("os.mkdir", {}),
        ("os.mkdir", {"sync": True}),
        ("agents.jobs.ensure_runners", {"sync": True}),
        ("agents.jobs.ensure_runners", {"hook": "os.mkdir"}),
        ("agents.jobs.ensure_runners", {"chain": [("os.mkdir", ("x",))]}),
    ],
    ids=["later", "at once", "ours at once", "ours with a hook", "ours with a chain"],
)
def test_a_schedule_runs_jobs_of_ours_only(tmp_path, function, options):
    written = tmp_path / "written"
    Schedule.objects.all().delete()
    Schedule.objects.create(
        name="foreign", func=function, args=repr((str(written),)), kwargs=repr({"q_options": options}), schedule_type="O",
        next_run=timezone.now() - timedelta(minutes=1), repeats=-1,
    )  # fmt: skip
    scheduler(get_broker())
    assert not written.exists()
    (queued,) = OrmQ.objects.all()
    assert (queued.task["func"], queued.task["args"], queued.task["kwargs"]) == ("agents.jobs.refuse", (function,), {})
    assert not set(jobs.OPTIONS) & set(queued.task)
    with pytest.raises(PermissionError, match=f"{function} is none of Orrery's jobs"):
        jobs.refuse(*queued.task["args"])


@pytest.mark.django_db(transaction=True)
def test_a_job_in_the_queue_that_nobody_signed_is_not_unpickled(tmp_path):
    payload = base64.urlsafe_b64encode(pickle.dumps(Planted(tmp_path / "written"))).decode()
    row = OrmQ.objects.create(key=queue_of("runners"), payload=f"{payload}:1tAAAA:forged", lock=timezone.now())
    assert row.task == {"id": "*BadSignature"}
    jobs.acknowledge("x")
    assert not (tmp_path / "written").exists()
