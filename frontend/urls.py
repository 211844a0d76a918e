"""Addresses of the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from django.views.generic import RedirectView

from frontend.views import agents, boards, devices, editing, inbox, machines, search, sessions

app_name = "frontend"
urlpatterns = [
    path("", sessions.sessions_page, name="sessions"),
    path("sessions/<int:pk>/", sessions.session_page, name="session"),
    path("agents/<int:pk>/", agents.agent_page, name="agent"),
    path("inbox/", inbox.inbox_page, name="inbox"),
    path("inbox/count/", inbox.count_waiting, name="inbox-count"),
    path("approvals/", RedirectView.as_view(pattern_name="frontend:inbox", query_string=True)),
    path("search/", search.search_page, name="search"),
    path("runs/", search.runs_page, name="runs"),
    path("devices/", devices.devices_page, name="devices"),
    path("runners/", boards.runners_page, name="runners"),
    path("models/", boards.models_page, name="models"),
    path("policies/", boards.policies_page, name="policies"),
    path("stuck/", boards.stuck_page, name="stuck"),
    path("reference/", machines.machines_page, name="machines"),
    path("machines/", RedirectView.as_view(pattern_name="frontend:machines")),
    path("machines/<str:name>/", machines.machine_page, name="machine"),
    path("machines/<str:name>/diagram/", machines.machine_diagram, name="machine-diagram"),
    path("editing/forms/", editing.editing_forms, name="editing-forms"),
    path(
        "login/",
        LoginView.as_view(template_name="frontend/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("login/link/<str:token>/", sessions.log_in_by_link, name="login-link"),
]
