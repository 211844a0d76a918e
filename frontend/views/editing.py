"""What the page of a session needs to edit its graph: the parameters of operations, which its forms are made from."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from constellations.plan.schemas import TOOLS

FORMS = ("add_task", "update_task", "add_dependency", "update_dependency")


@require_GET
@login_required
def editing_forms(request: HttpRequest) -> JsonResponse:
    """By operation, the JSON Schema of its parameters: one list of keys for plans, tools of models and forms of people."""
    return JsonResponse({name: TOOLS[name].parameters for name in FORMS})
