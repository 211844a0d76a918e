"""The shells of two pages that ask REST for all they show: search, and the comparison of runs of one plan."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET


@require_GET
@login_required
def search_page(request: HttpRequest) -> HttpResponse:
    """Search in all that the reader may see; `?q=` is what is looked for."""
    return render(request, "frontend/search.html")


@require_GET
@login_required
def runs_page(request: HttpRequest) -> HttpResponse:
    """The plans that were run; with `?plan=` the runs of one side by side."""
    return render(request, "frontend/runs.html")
