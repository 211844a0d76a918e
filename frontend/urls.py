"""Addresses of the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from frontend import agent_views, approval_views, machine_views, views

app_name = "frontend"
urlpatterns = [
    path("", views.sessions, name="sessions"),
    path("sessions/<int:pk>/", views.session, name="session"),
    path("agents/<int:pk>/", agent_views.agent, name="agent"),
    path("approvals/", approval_views.approvals, name="approvals"),
    path("approvals/count/", approval_views.count, name="approvals-count"),
    path("approvals/places/", approval_views.places, name="approvals-places"),
    path("machines/", machine_views.machines, name="machines"),
    path("machines/<str:name>/", machine_views.machine, name="machine"),
    path(
        "login/",
        LoginView.as_view(template_name="frontend/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("login/link/<str:token>/", views.login_link, name="login-link"),
]
