"""REST of agents at work: agents with their loops and evidence, what they wait for people to decide, and policies."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.filters import AgentFilter, ApprovalFilter
from agents.api.serializers import work as work_serializers
from agents.api.serializers.machines import History, TransitionRow
from agents.api.views import HISTORY_PAGE, Api, history_page, request_id
from agents.errors import AgentsError
from agents.machines import MACHINES, TOOL_LOOP
from agents.models import Agent, Approval, Loop, Policy, Session
from agents.reads import agents, history, verdicts
from agents.reads.costs import cost_of_agent
from agents.services import approvals, labels, policies
from agents.streams.fold import consistent_read

TRANSITIONS = 1_000
"""The latest that a detail shows."""


class WrongKind(AgentsError):
    """A call-back is no person's to decide, and nothing else is a call-back."""

    code = "wrong_kind"
    status = 409


class AgentViews(mixins.ListModelMixin, Api):
    """Agents: constellation agents, and device agents on their attempts."""

    serializer_class = work_serializers.AgentRow
    filterset_class = AgentFilter
    newest_first = True

    def get_queryset(self) -> QuerySet[Agent]:
        return Agent.objects.filter(session__in=Session.objects.visible_to(self.request.user)).select_related("device")

    @extend_schema(responses=work_serializers.AgentDetail)
    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(agent_detail(self.get_object()))

    @extend_schema(responses=work_serializers.EvidenceRow(many=True), filters=False)
    @action(detail=True, methods=["get"], serializer_class=work_serializers.EvidenceRow)
    def evidence(self, request: Request, pk: str) -> Response:
        self.newest_first = False
        rows = self.paginate_queryset(agents.evidence_of(self.get_object().pk))
        verdicts.set_since(rows)
        return self.get_paginated_response(work_serializers.EvidenceRow(rows, many=True).data)

    @extend_schema(responses=History, parameters=HISTORY_PAGE, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def transitions(self, request: Request, pk: str) -> Response:
        """How an agent came to its state: every transition, oldest first, with its number and its constellation."""
        with consistent_read():
            agent = self.get_object()
            return history_page(request, agent, agent.machine, history.about_agent(agent))

    @extend_schema(responses=History, parameters=HISTORY_PAGE, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def loop_transitions(self, request: Request, pk: str) -> Response:
        """The same of an agent's tool loop."""
        with consistent_read():
            agent = self.get_object()
            loop = Loop.objects.filter(agent=agent.pk).first()
            if loop is None:
                raise NotFound("the agent has no tool loop")
            return history_page(request, loop, TOOL_LOOP.name, history.about_agent(agent))

    @extend_schema(request=work_serializers.LabelBody, responses=work_serializers.LoopRow, filters=False)
    @action(detail=True, methods=["put"], pagination_class=None)
    def label(self, request: Request, pk: str) -> Response:
        """Say whether an agent was stuck, and since when, in the place of what was said before. Rules are measured by it."""
        agent, body = self.get_object(), self.body(work_serializers.LabelBody)
        loop = Loop.objects.filter(agent=agent.pk).first()
        if loop is None:
            raise NotFound("the agent has no tool loop")
        said = labels.loop_label(loop.pk, **body, by=actor_name(request), request_id=request_id(request))
        return Response(with_choices(said))


def agent_detail(agent: Agent) -> dict[str, Any]:
    """The agent, its history, and what there is of its work."""
    steps = history.latest_transitions(agent.pk, TRANSITIONS, history.about_agent(agent))
    loop = Loop.objects.filter(agent=agent.pk).first()
    evidence = agents.latest_evidence(agent.pk) if loop is not None else []
    return {
        **work_serializers.AgentRow(agent).data,
        "transitions": TransitionRow(steps, many=True).data,
        "time_per_state": history.time_per_state(agent, agent.machine),
        "choices": history.choices_of(agent.machine, agent.state),
        "loop": None if loop is None else with_choices(loop),
        "phases": work_serializers.PhaseRow(agent.phases.order_by("id")[: agents.PHASES], many=True).data,
        "evidence": work_serializers.EvidenceRow(evidence, many=True).data,
        "approvals": work_serializers.ApprovalRow(agents.approvals_of(agent), many=True).data,
        "children": agents.agents_below(agent.pk, levels=1),
        "blackboard": agent.blackboard,
        "app": agent.app,
        "plan": agent.plan,
        "progress": agents.progress_of(agent.pk, evidence),
        "cost": cost_of_agent(agent),
        "stuck": verdicts.latest_verdict(evidence, lives=not MACHINES[agent.machine].is_terminal(agent.state)),
    }


def with_choices(loop: Loop) -> dict[str, Any]:
    """The row, its time in each state, and the events it takes."""
    machine = TOOL_LOOP.name
    spent, choices = history.time_per_state(loop, machine), history.choices_of(machine, loop.state)
    return {**work_serializers.LoopRow(loop).data, "time_per_state": spent, "choices": choices}


class ApprovalViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, Api):
    """What agents wait for somebody to give: leave for one exact action, an answer, a call-back."""

    serializer_class = work_serializers.ApprovalRow
    filterset_class = ApprovalFilter
    newest_first = True
    needs = {"decision": "approve", "callback": "operate"}

    def get_queryset(self) -> QuerySet[Approval]:
        rows = approvals.visible_to(self.request.user)
        asked_for = self.action != "list" or self.request.query_params.get("kind")
        return rows if asked_for else rows.exclude(kind="callback")

    @extend_schema(request=work_serializers.DecisionBody, responses=work_serializers.ApprovalDecision)
    @action(detail=True, methods=["post"])
    def decision(self, request: Request, pk: str) -> Response:
        row, body = self.get_object(), self.body(work_serializers.DecisionBody)
        if row.kind == "callback":
            raise WrongKind(f"approval {row.pk} awaits an event from outside: post it to /api/approvals/{row.pk}/callback")
        return self._decided(row, **body)

    @extend_schema(request=work_serializers.CallbackBody, responses=work_serializers.ApprovalDecision)
    @action(detail=True, methods=["post"])
    def callback(self, request: Request, pk: str) -> Response:
        row, body = self.get_object(), self.body(work_serializers.CallbackBody)
        if row.kind != "callback":
            raise WrongKind(f"approval {row.pk} is a {row.kind}, which waits for a person: decide it")
        if "error" in body:
            return self._decided(row, decision="reject", reason=body["error"])
        return self._decided(row, decision="approve", answer=body["data"])

    def _decided(self, row: Approval, **asked: Any) -> Response:
        by, asked_as = actor_name(self.request), request_id(self.request)
        decided, changed = approvals.approval_decide(row.pk, by=by, request_id=asked_as, **asked)
        return Response({**work_serializers.ApprovalRow(decided).data, "changed": changed})


class PolicyViews(mixins.RetrieveModelMixin, Api):
    """What tools may do on this installation, all of it in the order in which it counts."""

    queryset = Policy.objects.all()
    serializer_class = work_serializers.PolicyRow
    pagination_class = None
    filter_backends: list[Any] = []
    needs = {
        "list": "read", "retrieve": "read", "create": "govern", "partial_update": "govern", "destroy": "govern",
    }  # fmt: skip

    @extend_schema(responses=work_serializers.PolicyList, operation_id="policies_list")
    def list(self, request: Request) -> Response:
        rows = work_serializers.PolicyRow(self.get_queryset()[: policies.POLICIES], many=True)
        return Response({"results": rows.data, "next": None})

    @extend_schema(request=work_serializers.PolicyBody, responses={201: work_serializers.PolicyRow})
    def create(self, request: Request) -> Response:
        body = self.body(work_serializers.PolicyBody)
        made = policies.policy_create(**body, by=actor_name(request), request_id=request_id(request))
        return Response(work_serializers.PolicyRow(made).data, status=201)

    @extend_schema(request=work_serializers.PolicyChange, responses=work_serializers.PolicyRow)
    def partial_update(self, request: Request, pk: str) -> Response:
        row, body = self.get_object(), self.body(work_serializers.PolicyChange)
        changed = policies.policy_change(row.pk, **body, by=actor_name(request), request_id=request_id(request))
        return Response(work_serializers.PolicyRow(changed).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        policies.policy_delete(self.get_object().pk, by=actor_name(request), request_id=request_id(request))
        return Response(status=204)
