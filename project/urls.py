"""All addresses of the installation."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from agents.problems import not_found, server_error
from frontend.login_limits import AdminLoginForm
from project.health import health

admin.site.site_header = admin.site.site_title = "Orrery"
admin.site.index_title = "Everything there is"
admin.site.login_form = AdminLoginForm

urlpatterns = [
    path("favicon.ico", RedirectView.as_view(url=static("frontend/orrery.svg"))),
    path("health/", health, name="health"),
    path("admin/", admin.site.urls),
    path("api/", include("agents.urls")),
    path("api/", include("constellations.urls")),
    re_path(r"^api(/|$)", not_found),
    path("", include("frontend.urls")),
]


def handler500(request):
    """A program gets a problem, a person Django's page."""
    from django.views.defaults import server_error as page

    return server_error(request) if request.path.startswith("/api/") else page(request)
