"""Real clusters of runners, killed at the end of their test whatever happens."""

from collections.abc import Callable, Iterator

import pytest

from agents.models import Device, Lease
from agents.services.devices import device_create
from tests.reliability.cluster import Cluster, Marks, OneRunner, marked, until


@pytest.fixture
def clusters(transactional_db, state_dir) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters; none of their processes, and no command of theirs, outlives the test."""
    made: list[Cluster] = []

    def make(**options) -> Cluster:
        made.append(Cluster(state_dir, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.kill()
    until(lambda: not marked(), "the last commands end by themselves")


@pytest.fixture
def begin_apart(engine, state_dir) -> Iterator[Callable[[dict], tuple[OneRunner, OneRunner]]]:
    """Has one runner hold the devices and another one drive the session of a plan: (holder, driver)."""
    made: list[OneRunner] = []

    def start() -> OneRunner:
        made.append(OneRunner(state_dir))
        return made[-1]

    def begin(plan: dict) -> tuple[OneRunner, OneRunner]:
        holder = start()
        until(lambda: not Device.objects.exclude(state="connected").exists(), "the devices are connected")
        driver = start()
        holder.stop_for_a_while()  # shorter than any lease: it only comes second
        engine.submit(plan)
        until(lambda: Lease.objects.filter(runner=driver.pk).exists(), "the session has the other runner")
        holder.go_on()
        return holder, driver

    yield begin
    for each in made:
        each.kill()
    until(lambda: not marked(), "what they had at work ends with them")


@pytest.fixture
def marks(state_dir) -> Marks:
    return Marks(state_dir)


@pytest.fixture
def wide(transactional_db) -> list[str]:
    """Two devices with eight slots each."""
    return [device_create(name, max_concurrent=8, by="system").name for name in ("east", "west")]
