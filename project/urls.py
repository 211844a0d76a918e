"""All addresses of the installation."""

import sys

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.utils.functional import lazy
from django.views.generic import RedirectView

from agents.api.problems import not_found, problem_body, problem_response, server_error
from agents.streams.outages import outage_refusal
from frontend.outages import outage_page
from project.health import report_health

admin.site.site_header = admin.site.site_title = "Orrery"
admin.site.index_title = "Everything there is"

urlpatterns = [
    path("favicon.ico", RedirectView.as_view(url=lazy(static, str)("frontend/orrery.svg"))),
    path("health/", report_health, name="health"),
    path("admin/", admin.site.urls),
    path("api/", include("agents.urls")),
    path("api/", include("constellations.urls")),
    re_path(r"^api(/|$)", not_found),
    path("", include("frontend.urls")),
]


def handler500(request):
    """A program gets a problem, a person a page. An outage met outside of any view, as where a login is stored, is told too."""
    from django.views.defaults import server_error as page

    error = sys.exc_info()[1]
    refused = outage_refusal(error) if error is not None else None
    if request.path.startswith("/api/"):
        return (
            server_error(request)
            if refused is None
            else problem_response(problem_body(refused.status, refused.code, str(refused)))
        )
    return page(request) if refused is None else outage_page(refused)
