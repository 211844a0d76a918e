"""Who may do what, over every door: the tables that `test_access_matrix.py` holds against the running code.

A line is an address, the least role (`anyone` needs no login, `login` any account, then viewer, operator, admin;
`one|other`: one of these; `enrolment`: no login and no token of a user will do), the scope that a token needs
(`read|edit`: one of them; `none`: no token may), and whose rows it is about:

own     those of the user; admins have all; for everybody else a row of another is not there (404)
mine    those of the user, for admins too
list    as own, where they are listed
shared  everybody's: devices, policies, model profiles, machines
-       no row at all

A new address without a line fails, and so does a line whose address has gone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agents.toolservers.offers import digest_of_all


class Line(NamedTuple):
    address: str
    role: str
    scope: str
    whose: str


def lines(text: str, *names: str) -> dict[str, Line]:
    """By the address; `names` are the columns that make it one."""
    found = {}
    for row in text.strip().splitlines():
        *address, role, scope, whose = row.split()
        assert len(address) == len(names), row
        found[" ".join(address)] = Line(" ".join(address), role, scope, whose)
    return found


REST = lines(
    """
    GET    /api/schema/                                 login     read     -
    GET    /api/docs/                                   login     read     -
    GET    /api/machines                                login     read     shared
    GET    /api/machines/{name}                         login     read     shared

    GET    /api/sessions                                login     read     list
    POST   /api/sessions                                operator  operate  -
    GET    /api/sessions/{pk}                           login     read     own
    PATCH  /api/sessions/{pk}                           operator  operate  own
    POST   /api/sessions/{pk}/commands                  operator  operate  own
    GET    /api/sessions/{pk}/events                    login     read     own
    GET    /api/sessions/{pk}/snapshot                  login     read     own
    GET    /api/sessions/{pk}/density                   login     read     own
    GET    /api/sessions/{pk}/people                    login     read     own
    GET    /api/sessions/{pk}/interactions              login     read     own
    POST   /api/sessions/{pk}/interactions              operator  operate  own
    GET    /api/sessions/{pk}/transitions               login     read     own
    POST   /api/sessions/{pk}/import                    operator  operate  own
    GET    /api/sessions/{pk}/model_calls               login     read     own
    PUT    /api/sessions/{pk}/budget                    operator  none     own
    DELETE /api/sessions/{pk}/budget                    operator  none     own

    GET    /api/sessions/{pk}/artifacts                 login     read     own
    POST   /api/sessions/{pk}/artifacts                 operator  operate  own
    GET    /api/sessions/{pk}/search                    login     read     own
    GET    /api/sessions/{pk}/timeline                  login     read     own
    GET    /api/sessions/{pk}/log                       login     read     own
    GET    /api/sessions/{pk}/log/download              login     read     own
    GET    /api/artifacts/{pk}                          login     read     own
    PATCH  /api/artifacts/{pk}                          operator  operate  own
    DELETE /api/artifacts/{pk}                          operator  operate  own
    GET    /api/artifacts/{pk}/content                  login     read     own

    GET    /api/agents                                  login     read     list
    GET    /api/agents/{pk}                             login     read     own
    GET    /api/agents/{pk}/evidence                    login     read     own
    POST   /api/agents/{pk}/hint                        operator  operate  own
    PUT    /api/agents/{pk}/label                       operator  operate  own
    GET    /api/agents/{pk}/loop_transitions            login     read     own
    GET    /api/agents/{pk}/transitions                 login     read     own

    GET    /api/approvals                               login     read     list
    GET    /api/approvals/{pk}                          login     read     own
    POST   /api/approvals/{pk}/callback                 operator  operate  own
    POST   /api/approvals/{pk}/decision                 operator  approve  own

    GET    /api/policies                                viewer    read     shared
    POST   /api/policies                                admin     admin    shared
    GET    /api/policies/{pk}                           viewer    read     shared
    PATCH  /api/policies/{pk}                           admin     admin    shared
    DELETE /api/policies/{pk}                           admin     admin    shared

    GET    /api/model_profiles                          viewer    read     shared
    POST   /api/model_profiles                          admin     admin    shared
    GET    /api/model_profiles/{pk}                     viewer    read     shared
    PATCH  /api/model_profiles/{pk}                     admin     admin    shared
    DELETE /api/model_profiles/{pk}                     admin     admin    shared

    GET    /api/budgets                                 viewer    read     shared
    POST   /api/budgets                                 admin     admin    shared
    GET    /api/budgets/{pk}                            viewer    read     shared
    PATCH  /api/budgets/{pk}                            admin     admin    shared
    DELETE /api/budgets/{pk}                            admin     admin    shared

    GET    /api/model_calls/{pk}                        login     read     own

    GET    /api/devices                                 viewer    read     shared
    POST   /api/devices                                 devices|admin  devices|admin  shared
    GET    /api/devices/{pk}                            viewer    read     shared
    PATCH  /api/devices/{pk}                            devices|admin  devices|admin  shared
    DELETE /api/devices/{pk}                            devices|admin  devices|admin  shared
    GET    /api/devices/{pk}/drain                      viewer    read     shared
    POST   /api/devices/{pk}/drain                      devices|admin  devices|admin  shared
    GET    /api/devices/{pk}/drain                      viewer    read     shared
    POST   /api/devices/{pk}/undrain                    devices|admin  devices|admin  shared
    POST   /api/devices/{pk}/offline                    devices|admin  devices|admin  shared
    POST   /api/devices/{pk}/online                     devices|admin  devices|admin  shared
    POST   /api/devices/{pk}/reset                      devices|admin  devices|admin  shared
    GET    /api/devices/{pk}/history                    viewer    read     shared
    GET    /api/devices/{pk}/readings                   viewer    read     shared
    POST   /api/devices/{pk}/enrolment                  devices|admin  devices|admin  shared
    GET    /api/devices/{pk}/tokens                     devices|admin  devices|admin  shared
    DELETE /api/devices/{pk}/tokens                     devices|admin  devices|admin  shared
    POST   /api/devices/{pk}/tokens/rotate              devices|admin  devices|admin  shared
    GET    /api/devices/{pk}/tools                      viewer    read     shared
    POST   /api/devices/{pk}/tools/accept               admin     admin    shared
    POST   /api/devices/enrol                           enrolment none     -

    GET    /api/tokens                                  login     read     list
    POST   /api/tokens                                  login     admin    -
    DELETE /api/tokens/{id}                             login     admin    mine

    GET    /api/constellations                          login     read     list
    GET    /api/constellations/{pk}                     login     read     own
    POST   /api/constellations/{pk}/commands            operator  operate  own
    GET    /api/constellations/{pk}/edits               login     read     own
    POST   /api/constellations/{pk}/edits               operator  edit     own
    GET    /api/constellations/{pk}/edits/{edit_id}     login     read     own
    POST   /api/constellations/{pk}/edits/{edit_id}/undo  operator  edit   own
    GET    /api/constellations/{pk}/export              login     read     own
    POST   /api/constellations/{pk}/fork                operator  operate  own
    POST   /api/constellations/{pk}/import              operator  edit     own
    POST   /api/constellations/{pk}/preview             operator  edit     own
    POST   /api/constellations/{pk}/reopen              operator  operate  own
    POST   /api/constellations/{pk}/retry               operator  operate  own
    POST   /api/constellations/{pk}/start               operator  operate  own
    GET    /api/constellations/{pk}/statistics          login     read     own
    GET    /api/constellations/{pk}/transitions         login     read     own
    POST   /api/import/check                            viewer    read     -

    GET    /api/home                                    login     read     list
    GET    /api/inbox                                   login     read     list
    GET    /api/inbox/decided                           login     read     list
    GET    /api/search                                  login     read     list
    GET    /api/runs                                    login     read     list
    GET    /api/runs/{plan}                             login     read     own

    GET    /api/tasks                                   login     read     list
    GET    /api/tasks/{pk}                              login     read     own
    POST   /api/tasks/{pk}/cancel                       operator  operate  own
    GET    /api/tasks/{pk}/output                       login     read     own
    POST   /api/tasks/{pk}/retry                        operator  operate  own
    POST   /api/tasks/{pk}/skip                         operator  operate  own
    GET    /api/tasks/{pk}/transitions                  login     read     own
    GET    /api/tasks/{pk}/why                          login     read     own
    """.replace("\n\n", "\n"),
    "method", "path",
)  # fmt: skip

PLAN = "name: one\ntasks:\n  - {task_id: only, tool: noop}\n"
ADDED = [{"op": "add_task", "parameters": {"task_id": "new", "tool": "noop"}}]
ANSWER = (
    '{"thought": "t", "status": "CONTINUE", "action": [{"function": "add_task", "arguments": {"task_id": "by", "name": "n"}}]}'
)
OFFERED = {"name": "changed.add", "description": "Adds.", "arguments": {"type": "object"}, "digest": "1"}
"""What a tool server offers by now that was not accepted."""
BODIES: dict[str, Any] = {
    "POST /api/sessions": {"title": "one more", "plan": PLAN},
    "PATCH /api/sessions/{pk}": {"title": "another"},
    "POST /api/sessions/{pk}/commands": {"kind": "ping"},
    "POST /api/sessions/{pk}/interactions": {"plan": PLAN},
    "POST /api/sessions/{pk}/import": {"document": PLAN},
    "POST /api/agents/{pk}/hint": {"text": "Look again."},
    "PUT /api/agents/{pk}/label": {"stuck": False},
    "POST /api/approvals/{pk}/callback": {"data": {"a": 1}},
    "POST /api/approvals/{pk}/decision": {"decision": "reject"},
    "PATCH /api/artifacts/{pk}": {"is_kept": True},
    "POST /api/policies": {"decision": "deny", "tool": "command"},
    "PATCH /api/policies/{pk}": {"decision": "allow"},
    "POST /api/model_profiles": {"name": "a-new-one", "provider": "anthropic", "model": "m"},
    "PATCH /api/model_profiles/{pk}": {"model": "another"},
    "POST /api/budgets": {"scope": "user", "tokens": 1000},
    "PATCH /api/budgets/{pk}": {"tokens": 2000},
    "PUT /api/sessions/{pk}/budget": {"tokens": 1000},
    "POST /api/devices": {"name": "a-new-one"},
    "PATCH /api/devices/{pk}": {"capabilities": ["more"]},
    "POST /api/devices/{pk}/tools/accept": {"digest": digest_of_all([OFFERED])},
    "POST /api/tokens": {"name": "a child", "scopes": ["admin"], "days": 1},
    "POST /api/constellations/{pk}/commands": {"kind": "pause"},
    "POST /api/constellations/{pk}/edits": {"operations": ADDED},
    "POST /api/constellations/{pk}/edits/{edit_id}/undo": {},
    "POST /api/constellations/{pk}/import": {"document": ANSWER},
    "POST /api/constellations/{pk}/preview": {"operations": ADDED},
    "POST /api/constellations/{pk}/reopen": {"retry": ["only"]},
    "POST /api/constellations/{pk}/retry": {"tasks": ["failed"]},
    "POST /api/constellations/{pk}/start": {},
    "POST /api/import/check": {"document": PLAN},
    "POST /api/tasks/{pk}/cancel": {"reason": "enough"},
    "POST /api/tasks/{pk}/skip": {"reason": "enough"},
}
"""With which whoever may is answered by 2xx; without an entry the body is empty."""
RAW = {
    "POST /api/sessions/{pk}/artifacts": "?name=a.txt",
    "GET /api/sessions/{pk}/search": "?text=said",
    "GET /api/search": "?q=digits",
}
"""What some addresses have to be asked in the query string; a body there is taken as it is."""

PAGES = lines(
    """
    /favicon.ico                   anyone    -  -
    /health/                       anyone    -  -
    /login/                        anyone    -  -
    /login/link/<token>/           anyone    -  -
    /logout/                       anyone    -  -
    /                              login     -  list
    /sessions/<pk>/                login     -  own
    /agents/<pk>/                  login     -  own
    /inbox/                        login     -  -
    /inbox/count/                  login     -  -
    /approvals/                    anyone    -  -
    /search/                       login     -  -
    /runs/                         login     -  -
    /devices/                      login     -  shared
    /runners/                      viewer    -  list
    /models/                       viewer    -  list
    /policies/                     viewer    -  shared
    /stuck/                        login     -  list
    /reference/                    login     -  shared
    /machines/                     anyone    -  -
    /machines/<name>/              login     -  shared
    /machines/<name>/diagram/      login     -  shared
    /editing/forms/                login     -  shared
    """,
    "path",
)
"""Pages know logins only: with a token and nothing else everybody is anonymous there."""

LIVE = lines(
    """
    websocket  /ws/sessions/{pk}/           login  read  own
    SSE        /api/sessions/{pk}/stream/   login  read  own
    """,
    "door", "path",
)  # fmt: skip

TOOLS = lines(
    """
    build_constellation     operator  edit|operate  own
    add_task                operator  edit|operate  own
    remove_task             operator  edit|operate  own
    update_task             operator  edit|operate  own
    add_dependency          operator  edit|operate  own
    remove_dependency       operator  edit|operate  own
    update_dependency       operator  edit|operate  own
    apply_edit              operator  edit|operate  own
    preview_edit            operator  edit|operate  own
    undo_edit               operator  edit          own
    start_request           operator  operate       own
    get_session             login     read          own
    get_constellation       login     read          own
    list_constellations     login     read          list
    why                     login     read          own
    get_output              login     read          own
    read_value              login     read          own
    list_edits              login     read          own
    list_devices            viewer    read          shared
    pause                   operator  operate       own
    resume                  operator  operate       own
    cancel                  operator  operate       own
    restart                 operator  operate       own
    cancel_task             operator  operate       own
    retry                   operator  operate       own
    reopen                  operator  operate       own
    fork                    operator  operate       own
    list_approvals          login     read          list
    decide_approval         operator  approve       own
    """,
    "tool",
)
"""MCP knows tokens only. `edit|operate`: with operate alone an edit is proposed, and nothing is changed by it."""

ASKED_OF_MCP = lines(
    """
    tools/list                 login  -     -
    resources/list             login  read  list
    resources/templates/list   login  -     -
    """,
    "method",
)

RESOURCES = lines(
    """
    orrery://constellations/{id}                                             login   read  own
    orrery://constellations/{id}/{part}                                      login   read  own
    orrery://constellations/{id}/tasks/{task_id}/{part}                      login   read  own
    orrery://constellations/{id}/tasks/{task_id}/attempts/{number}/{part}    login   read  own
    orrery://constellations/{id}/edits/{edit_id}/{part}                      login   read  own
    orrery://approvals/{id}                                                  login   read  own
    orrery://approvals/{id}/{part}                                           login   read  own
    orrery://devices/{name}/{part}                                           viewer  read  shared
    orrery://sessions/{session}/interactions/{id}/{part}                     login   read  own
    """,
    "uri",
)
ARGUMENTS: dict[str, Any] = {
    "build_constellation": {"constellation_id": "constellation", "tasks": [{"task_id": "built", "tool": "noop"}]},
    "add_task": {"constellation_id": "constellation", "task_id": "new", "tool": "noop"},
    "remove_task": {"constellation_id": "constellation", "task_id": "last"},
    "update_task": {"constellation_id": "constellation", "task_id": "waits", "name": "renamed"},
    "add_dependency": {"constellation_id": "constellation", "from": "done", "to": "last"},
    "remove_dependency": {"constellation_id": "constellation", "from": "done", "to": "more"},
    "update_dependency": {"constellation_id": "constellation", "from": "done", "to": "more", "type": "COMPLETION_ONLY"},
    "apply_edit": {"constellation_id": "constellation", "operations": ADDED},
    "preview_edit": {"constellation_id": "constellation", "operations": ADDED},
    "undo_edit": {"constellation_id": "constellation", "edit_id": "mine"},
    "start_request": {"session": "session", "plan": PLAN},
    "get_session": {"session": "session"},
    "get_constellation": {"constellation_id": "constellation"},
    "why": {"constellation_id": "constellation", "task_id": "waits"},
    "get_output": {"constellation_id": "constellation", "task_id": "done"},
    "read_value": {"address": "orrery://constellations/{constellation}/tasks/done/output"},
    "list_edits": {"constellation_id": "constellation"},
    "pause": {"constellation_id": "constellation"},
    "resume": {"constellation_id": "constellation"},
    "cancel": {"constellation_id": "constellation", "reason": "enough"},
    "restart": {"constellation_id": "constellation"},
    "cancel_task": {"constellation_id": "constellation", "task_id": "waits", "reason": "enough"},
    "retry": {"constellation_id": "constellation", "tasks": ["failed"]},
    "reopen": {"constellation_id": "ended", "retry": ["only"]},
    "fork": {"constellation_id": "constellation"},
    "decide_approval": {"approval_id": "approval", "decision": "reject"},
}
"""Of MCP's tools; a text that is a field of a World stands for what that has."""

PARTS = {"id": "constellation", "task_id": "done", "number": 1, "edit_id": "mine", "name": "everyones", "session": "session"}
"""What stands in the places of a resource's address, and below the part that each is asked for."""
PART_OF = {"constellations": "rules", "tasks": "output", "attempts": "output", "edits": "reason", "approvals": "action",
           "devices": "limits", "interactions": "request"}  # fmt: skip

# The admin. Everybody there is staff; `super` are superusers, and nobody else.
ADMIN = {
    row.split()[0]: tuple(row.split()[1:])
    for row in """
    agents.session             login   -         -         -         own
    agents.actor               login   -         -         -         own
    agents.inboxitem           login   -         -         -         own
    agents.agent               login   -         -         -         own
    agents.loop                login   -         operator  -         own
    agents.evidence            login   -         -         -         own
    agents.phaserecord         login   -         -         -         own
    agents.approval            login   -         -         -         own
    agents.slotrequest         login   -         -         -         own
    agents.lease               login   -         -         -         own
    agents.stream              login   -         -         -         own
    agents.event               login   -         -         -         own
    agents.transition          login   -         -         -         own
    agents.token               login   -         -         -         own
    agents.device              login   admin     admin     -         shared
    agents.devicelink          login   -         -         -         shared
    agents.devicereading       login   -         -         -         shared
    agents.devicecall          login   -         -         -         own
    agents.devicecallmessage   login   -         -         -         own
    agents.devicetoken         login   -         -         -         admins
    agents.policy              login   admin     admin     admin     shared
    agents.modelcall           login   -         -         -         own
    agents.modeldelta          login   -         -         -         admins
    agents.modelprofile        login   admin     admin     admin     shared
    agents.budget              login   admin     admin     admin     admins
    agents.spending            login   -         -         -         admins
    agents.reservation         login   -         -         -         admins
    agents.output              login   -         -         -         admins
    agents.artifact            login   -         -         -         own
    agents.storedcontent       login   -         -         -         admins
    agents.prompt              login   -         -         -         admins
    agents.runner              login   -         -         -         admins
    constellations.constellation  login  -       operator  -         own
    constellations.task        login   -         operator  operator  own
    constellations.dependency  login   -         operator  operator  own
    constellations.attempt     login   -         -         -         own
    constellations.edit        login   -         operator  -         own
    constellations.normalform  login   -         -         -         own
    axes.accessattempt         admin   -         -         admin     shared
    auth.user                  super   super     super     super     shared
    auth.group                 super   super     super     super     shared
    django_q.schedule          login   -         -         -         admins
    django_q.success           login   -         -         -         admins
    django_q.failure           login   -         -         -         admins
    django_q.ormq              login   -         -         -         admins
    """.strip().splitlines()
}  # fmt: skip
"""By model: who sees its list, adds, changes, deletes, and whose rows are shown (`admins`: to admins all, to others none)."""
ADMIN_PLACES = {
    "admin/": "login", "admin/jsi18n/": "login", "admin/password_change/": "login", "admin/password_change/done/": "login",
    "admin/autocomplete/": "refused", "admin/r/<path:content_type_id>/<path:object_id>/": "refused",
    "admin/(?P<url>.*)$": "refused", "admin/<app_label>/": "login",
    "admin/login/": "anyone", "admin/logout/": "anyone", "admin/auth/user/<id>/password/": "super",
    "admin/constellations/constellation/<path:object_id>/mend/": "operator",
    "admin/constellations/constellation/<path:object_id>/reopen/": "operator",
    "admin/constellations/constellation/<path:object_id>/fork/": "operator",
    "admin/constellations/constellation/begun/<int:interaction>/": "login",
}  # fmt: skip
"""The other addresses of the admin."""
ACTIONS = {
    "agents.device": ("drain", "undrain", "offline", "online", "reset", "retire", "accept_tools"),
    "agents.policy": ("delete_selected",),
    "constellations.constellation": ("start", "pause", "resume", "retry_failed", "restart", "cancel"),
    "constellations.task": ("retry_tasks", "skip_tasks", "cancel_tasks", "remove"),
    "constellations.dependency": ("remove",),
}
"""What is done to rows of a list that were chosen; each needs the role operator, of policies and devices admin."""
