"""Addresses of the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from frontend.views import agents, approvals, machines, sessions

app_name = "frontend"
urlpatterns = [
    path("", sessions.sessions, name="sessions"),
    path("sessions/<int:pk>/", sessions.session, name="session"),
    path("agents/<int:pk>/", agents.agent, name="agent"),
    path("approvals/", approvals.approvals, name="approvals"),
    path("approvals/count/", approvals.count, name="approvals-count"),
    path("approvals/places/", approvals.places, name="approvals-places"),
    path("machines/", machines.machines, name="machines"),
    path("machines/<str:name>/", machines.machine, name="machine"),
    path(
        "login/",
        LoginView.as_view(template_name="frontend/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("login/link/<str:token>/", sessions.login_link, name="login-link"),
]
