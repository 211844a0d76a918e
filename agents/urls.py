"""Addresses under /api/ of what agents own."""

from django.urls import include, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from agents.access.permissions import RoleAndScope
from agents.api import artifact_views, device_views, model_views, views, work_views
from agents.api.queries import KnownQuery
from agents.api.schema import DESCRIBING

SCRIPT = OpenApiParameter("script", OpenApiTypes.STR, description="The page's script instead of the page.")


class Router(SimpleRouter):
    """Addresses with and without a slash at the end: a POST cannot be redirected."""

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"


@extend_schema_view(get=extend_schema(responses=OpenApiTypes.OBJECT, exclude=True))
class Description(KnownQuery, SpectacularAPIView):
    """The description, as YAML or with `?format=json` as JSON."""

    permission_classes = [RoleAndScope]

    def get(self, request, *args, **kwargs):
        with DESCRIBING:
            return super().get(request, *args, **kwargs)


@extend_schema_view(get=extend_schema(parameters=[SCRIPT], responses=OpenApiTypes.STR, exclude=True))
class Docs(KnownQuery, SpectacularSwaggerSplitView):
    """The description as a page, from files of ours. Swagger's own styles are inline, which our pages do not allow."""

    permission_classes = [RoleAndScope]
    http_method_names = ["get", "head"]

    def finalize_response(self, *args, **kwargs):
        response = super().finalize_response(*args, **kwargs)
        response["Content-Security-Policy"] = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
        return response


router = Router()
router.register("sessions", views.SessionViews, basename="session")
router.register("agents", work_views.AgentViews, basename="agent")
router.register("approvals", work_views.ApprovalViews, basename="approval")
router.register("policies", work_views.PolicyViews, basename="policy")
router.register("model_profiles", model_views.ModelProfileViews, basename="model-profile")
router.register("budgets", model_views.BudgetViews, basename="budget")
router.register("model_calls", model_views.ModelCallViews, basename="model-call")
router.register("artifacts", artifact_views.ArtifactViews, basename="artifact")
router.register("devices", device_views.DeviceViews, basename="device")
router.register("tokens", views.TokenViews, basename="token")
router.register("machines", views.MachineViews, basename="machine")

urlpatterns = [
    path("schema/", Description.as_view(), name="schema"),
    path("docs/", Docs.as_view(), name="api-docs"),
    path("", include(router.urls)),
]
