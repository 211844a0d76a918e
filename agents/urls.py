"""Addresses under /api/ of what agents own."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from agents import api, working_api
from agents.permissions import RoleAndScope


class Router(SimpleRouter):
    """Addresses with and without a slash at the end: a POST cannot be redirected."""

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"


class Docs(SpectacularSwaggerSplitView):
    """The description as a page, from files of ours. Swagger's own styles are inline, which our pages do not allow."""

    permission_classes = [RoleAndScope]

    def finalize_response(self, *args, **kwargs):
        response = super().finalize_response(*args, **kwargs)
        response["Content-Security-Policy"] = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
        return response


router = Router()
router.register("sessions", api.SessionViews, basename="session")
router.register("agents", working_api.AgentViews, basename="agent")
router.register("approvals", working_api.ApprovalViews, basename="approval")
router.register("policies", working_api.PolicyViews, basename="policy")
router.register("devices", api.DeviceViews, basename="device")
router.register("tokens", api.TokenViews, basename="token")
router.register("machines", api.MachineViews, basename="machine")

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(permission_classes=[RoleAndScope]), name="schema"),
    path("docs/", Docs.as_view(), name="api-docs"),
    path("", include(router.urls)),
]
