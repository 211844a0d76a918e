"""Machines that dial in, killed, cut off and drained in the middle of a run: it ends right, and nothing runs twice."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from agents.models import Event, InboxItem, Transition
from agents.services.devices import device_bring_back, device_drain, device_take_offline
from agents.services.sessions import request_submit
from agents.streams.verify import verify_database
from constellations.models import Attempt, Task
from tests.attacks.web_server import web_server
from tests.reliability.cluster import Cluster, until
from tests.reliability.fleet import ONCE, CuttingProxy, DeviceClient, make_remote
from tests.reliability.namespaces import Namespaces, may_make_namespaces

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]


@pytest.fixture
def clients(transactional_db, tmp_path):
    """Makes clients; none outlives the test."""
    made: list[DeviceClient] = []

    def make(name: str, within: tuple[str, ...] = (), **more) -> DeviceClient:
        made.append(DeviceClient(tmp_path, make_remote(name, **more), within))
        return made[-1]

    yield make
    for client in made:
        client.kill()


def on(device: str, task_id: str, seconds: float, **more) -> dict:
    return {"task_id": task_id, "device": device, "command": ["sh", "-c", ONCE, f"{seconds:g}"], "timeout": 120, **more}


@pytest.fixture
def at_work(clients, clusters, engine):
    """(a client that dials in there and carries out one command, the command's session, the cluster that asked for it)."""

    def begin(port: int, seconds: float, **more) -> tuple[DeviceClient, int, Cluster]:
        client = clients("far")
        client.start(f"http://127.0.0.1:{port}")
        client.until_connected()
        session, _ = engine.submit({"tasks": [on("far", "one", seconds, **more)], "dependencies": []})
        cluster = clusters(runners=1)
        cluster.start()
        until(lambda: client.marks("start"), "the command runs")
        return client, session.pk, cluster

    return begin


def all_answered() -> bool:
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def test_a_command_runs_on_a_machine_that_dials_in(at_work, state_dir):
    with web_server(state_dir) as server:
        client, _, _ = at_work(server.port, 0.1)
        until(all_answered, "the command")
        task = Task.objects.get()
        assert task.state == "COMPLETED", (task.error, client.log())
        assert client.marks("end") == [Attempt.objects.get().pk]
        client.end()
        until(lambda: client.state() == "disconnected", "it said good-bye")
        assert list(verify_database()) == []


def states_of(client: DeviceClient) -> list[str]:
    """Every state that the device came to, in order."""
    return list(Transition.objects.filter(stream_id=client.device.pk).order_by("id").values_list("to_state", flat=True))


def check_marks(*clients: DeviceClient) -> None:
    """No attempt began twice, wherever; each that is completed has begun and ended on one device."""
    begun = Counter(attempt for client in clients for attempt in client.marks("start"))
    ended = Counter(attempt for client in clients for attempt in client.marks("end"))
    assert set(begun.values()) | set(ended.values()) <= {1}
    completed = set(Attempt.objects.filter(outcome="completed").values_list("pk", flat=True))
    assert completed <= set(begun), "an attempt is completed that has left no mark"
    assert completed <= set(ended)


class Proxies:
    """Each device's way to the server is a proxy of its own, which cuts connections."""

    def __init__(self) -> None:
        self._proxies: dict[str, CuttingProxy] = {}

    def listen(self) -> None:
        return None

    def way(self, name: str) -> tuple[str, ...]:
        return ()

    def address(self, name: str, port: int) -> str:
        proxy = self._proxies.setdefault(name, CuttingProxy(port))
        return f"http://127.0.0.1:{proxy.port}"

    def cut(self, name: str) -> None:
        self._proxies[name].cut()

    def restore(self, name: str) -> None:
        self._proxies[name].restore()

    def remove(self) -> None:
        for proxy in self._proxies.values():
            proxy.close()


class Cables(Namespaces):
    """Each device is in a network namespace of its own, with a cable to the server's."""

    def __init__(self) -> None:
        super().__init__()
        self._ways: dict[str, tuple[tuple[str, ...], str]] = {}

    def way(self, name: str) -> tuple[str, ...]:
        self._ways[name] = self.cable(name)
        return self._ways[name][0]

    def address(self, name: str, port: int) -> str:
        return f"http://{self._ways[name][1]}:{port}"


@pytest.fixture(params=["proxies", "namespaces"])
def network(request):
    if request.param == "namespaces" and not may_make_namespaces():
        pytest.skip("this machine does not let us make network namespaces")
    made = Proxies() if request.param == "proxies" else Cables()
    yield made
    made.remove()


def test_one_is_killed_one_cut_off_and_one_drained_and_the_run_ends_right(clients, clusters, engine, state_dir, network):
    with web_server(state_dir, listens=network.listen(), ORRERY_ALLOWED_HOSTS="*") as server:
        killed, cut, drained = made = [clients(name, network.way(name), heartbeat_s=2) for name in ("killed", "cut", "drained")]
        for client in made:
            client.start(network.address(client.device.name, server.port))
        for client in made:
            client.until_connected()
        tasks = [
            on(name, f"{name}{n}", 1.5 + n / 2, on_lost="retry") for name in ("killed", "cut", "drained") for n in range(3)
        ]
        last = {"task_id": "last", "command": ["sh", "-c", ONCE, "0"]}
        waits = [{"from": each["task_id"], "to": "last", "type": "SUCCESS_ONLY"} for each in tasks]
        engine.submit({"tasks": [*tasks, last], "dependencies": waits})
        clusters().start()
        until(lambda: all(len(client.marks("start")) == 3 for client in made), "nine commands run")
        killed.kill()
        network.cut("cut")
        device_drain(drained.device.pk, by="user:1", reason="maintenance")
        until(lambda: cut.marks("end"), "a command ends while nobody hears it")
        network.restore("cut")
        killed.start(network.address("killed", server.port))
        until(all_answered, "the constellation")
        assert set(Task.objects.values_list("state", flat=True)) == {"COMPLETED"}
        check_marks(*made)
        attempts = Counter(Attempt.objects.values_list("task__task_id", "outcome"))
        assert all(attempts[f"killed{n}", "lost"] == 1 for n in range(3))
        assert all(attempts[f"cut{n}", "lost"] + attempts[f"drained{n}", "lost"] == 0 for n in range(3))
        assert states_of(cut) == ["connecting", "connected"]
        assert states_of(drained) == ["connecting", "connected", "draining"]
        assert Attempt.objects.get(task__task_id="last").pk not in drained.marks("start")
        assert list(verify_database()) == []


def test_a_command_goes_on_when_the_runner_that_asked_for_it_is_killed(at_work, clusters, state_dir):
    with web_server(state_dir) as server:
        client, _, first = at_work(server.port, 2.5, on_lost="fail")
        first.kill()
        clusters(runners=1).start()
        until(all_answered, "the constellation")
        task = Task.objects.get()
        assert (task.state, Attempt.objects.get().outcome) == ("COMPLETED", "completed"), task.error
        check_marks(client)
        assert states_of(client) == ["connecting", "connected"]
        assert list(verify_database()) == []


def test_a_command_goes_on_when_the_web_server_that_has_the_device_is_killed(at_work, state_dir):
    with web_server(state_dir) as second:
        with web_server(state_dir, log="first.log") as first:
            proxy = CuttingProxy(first.port)
            client, _, _ = at_work(proxy.port, 2, on_lost="fail")
            first.process.kill()
            proxy.restore(second.port)
            until(all_answered, "the constellation")
        proxy.close()
        task = Task.objects.get()
        assert (task.state, Attempt.objects.get().outcome) == ("COMPLETED", "completed"), task.error
        check_marks(client)
        assert states_of(client) == ["connecting", "connected"]
        assert list(verify_database()) == []


def test_a_device_that_is_silent_for_too_long_is_lost_and_what_it_says_later_is_refused(at_work, state_dir):
    with web_server(state_dir) as server:
        client, _, _ = at_work(server.port, 1, on_lost="fail")
        client.signal(signal.SIGSTOP)
        until(lambda: client.marks("end"), "the command ends, and nobody says so")
        until(all_answered, "its task follows on_lost")
        assert Task.objects.get().state == "FAILED"
        client.signal(signal.SIGCONT)
        late_results = Event.objects.filter(stream_id=client.device.pk, type="late_result")
        until(late_results.exists, "the late result is refused")
        client.until_connected()
        late = late_results.get().data
        assert (late["attempt_id"], late["outcome"], late["counted"]) == (Attempt.objects.get().pk, "completed", "lost")
        assert Attempt.objects.get().outcome == "lost"
        assert states_of(client) == ["connecting", "connected", "disconnected", "connecting", "connected"]
        assert list(verify_database()) == []


def test_a_device_that_is_taken_offline_ends_its_commands_and_stays_away(at_work, state_dir):
    with web_server(state_dir) as server:
        client, _, _ = at_work(server.port, 60, on_lost="fail")
        device_take_offline(client.device.pk, by="user:1", reason="moved to another room")
        until(lambda: not client.at_work(), "its processes are ended")
        until(all_answered, "its task follows on_lost")
        until(lambda: "taken offline" in client.log(), "the client is told why it is not let in")
        assert client.state() == "disconnected"
        device_bring_back(client.device.pk, by="user:1")
        client.until_connected()
        assert not client.marks("end")


def test_a_cancelled_command_is_ended_with_its_processes_wherever_it_runs(at_work, state_dir):
    with web_server(state_dir) as server:
        client, session, _ = at_work(server.port, 60)
        request_submit(session, "cancel", "", {"reason": "enough"}, by="system")
        until(lambda: not client.at_work(), "its processes are ended")
        until(lambda: Attempt.objects.get().outcome == "cancelled", "the attempt says so")
        assert client.state() == "connected"
