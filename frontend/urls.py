"""Addresses of the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from frontend.views import agents, approvals, machines, sessions

app_name = "frontend"
urlpatterns = [
    path("", sessions.sessions_page, name="sessions"),
    path("sessions/<int:pk>/", sessions.session_page, name="session"),
    path("agents/<int:pk>/", agents.agent_page, name="agent"),
    path("approvals/", approvals.approvals_page, name="approvals"),
    path("approvals/count/", approvals.count_waiting, name="approvals-count"),
    path("approvals/places/", approvals.waiting_places, name="approvals-places"),
    path("machines/", machines.machines_page, name="machines"),
    path("machines/<str:name>/", machines.machine_page, name="machine"),
    path(
        "login/",
        LoginView.as_view(template_name="frontend/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("login/link/<str:token>/", sessions.log_in_by_link, name="login-link"),
]
