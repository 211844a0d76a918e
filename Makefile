# `make demo` and `make test` do everything on a fresh machine with Python 3.11 or later, make and git.
# Variables: PORT (8000), HOST (127.0.0.1), ONCE=1 (make demo and demo-model end with the run), PYTHON (the first that is new enough),
# DATABASE_URL and the others of docs/settings.md, PYTEST_FLAGS, SIDE_BY_SIDE (tests that run at once; one a core),
# WAITING_SIDE_BY_SIDE (the same of long ones, which wait for processes, leases and a database half of their time).

PORT ?= 8000
HOST ?= 127.0.0.1
PYTHON ?=
PYTEST_FLAGS ?=
SIDE_BY_SIDE ?= 2
WAITING_SIDE_BY_SIDE ?= 3
POSTGRES_URL ?= postgresql://postgres@127.0.0.1:5432/orrery
VENV := .venv
RUN := $(VENV)/bin/python
PACKAGES := agents constellations frontend project
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check

PYTEST = $(RUN) -m pytest --dist worksteal -n $(SIDE_BY_SIDE)

export ONCE
# Where nothing may be kept, each process of an installation, and each worker of a test run, would compile all anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo demo-model up device test test-long test-browser test-services check audit format bench bench-smoke pictures kill-storm verify install install-dev database clean

help:
	@echo "make demo            start everything, run the example, show it"
	@echo "make demo-model      the same asked in words, answered by a scripted model: no key is needed"
	@echo "make up              start everything"
	@echo "make device          the client of devices that dial in, as one file"
	@echo "make test            the tests that need no server and no browser, but the long ones"
	@echo "make test-long       the long ones: attacks, kills, whole installations"
	@echo "make test-browser    the tests in Debian's chromium"
	@echo "make test-services   of the first two what a database could answer otherwise, on PostgreSQL ($(POSTGRES_URL))"
	@echo "make check           format, lint, rooms, types, migrations, tests"
	@echo "make audit           known vulnerabilities of the pinned libraries, where the service answers"
	@echo "make verify          fold every stream and compare it with the rows"
	@echo "make bench           the benchmarks (make bench-smoke: a short look; bench-smoke-sqlite, bench-smoke-postgres)"
	@echo "make pictures        the README's pictures anew, taken from a run of its example"
	@echo "make kill-storm      60 kills of every kind against an installation at work"
	@echo "make clean           remove .venv and caches; var/ with the database stays"

demo: install database
	@$(RUN) manage.py demo --host $(HOST) --port $(PORT)

demo-model: export ORRERY_MODEL_HOSTS ?= 127.0.0.1
demo-model: install database
	@$(RUN) manage.py demo --host $(HOST) --port $(PORT) --script examples/models/mnist.yaml

up: install database
	@$(RUN) manage.py up --host $(HOST) --port $(PORT)

device: install
	@$(RUN) manage.py device_file

verify: install
	@$(RUN) manage.py verify

test: install-dev
	$(PYTEST) $(PYTEST_FLAGS)

test-long test-services: SIDE_BY_SIDE := $(WAITING_SIDE_BY_SIDE)
test-long: install-dev
	$(PYTEST) -m "attack or kill or live" $(PYTEST_FLAGS)

test-browser: install-dev
	$(PYTEST) --dist loadfile -m browser $(PYTEST_FLAGS)

test-services: export DATABASE_URL := $(POSTGRES_URL)
test-services: install-dev
	$(PYTEST) -m "not browser" --with-a-database $(PYTEST_FLAGS)

check: install-dev
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy $(PACKAGES)
	$(VENV)/bin/lint-imports --no-logo
	$(RUN) manage.py makemigrations --check --dry-run
	$(RUN) manage.py check
	$(PYTEST) $(PYTEST_FLAGS)

audit: install-dev
	@$(RUN) .ci/audit.py

format: install-dev
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench: install-dev
	$(RUN) -m benchmarks

bench-smoke: install-dev
	$(RUN) -m benchmarks --smoke

bench-smoke-%: install-dev
	$(RUN) -m benchmarks --smoke --database $*

pictures: install-dev
	$(RUN) frontend/pictures/make_pictures.py

kill-storm: install-dev
	$(RUN) -m benchmarks.kill_storm

database: install
	@$(RUN) manage.py migrate -v 0

install: $(VENV)/installed
install-dev: $(VENV)/installed-dev

$(VENV)/bin/python:
	@for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$python"; exec $$python -m venv $(VENV); \
		fi; \
	done; echo "Python 3.11 or later is needed; name one with PYTHON=" >&2; exit 1

$(VENV)/installed: requirements.txt examples/requirements.txt | $(VENV)/bin/python
	@echo "Installing what Orrery runs with"
	@$(PIP) -r requirements.txt -r examples/requirements.txt
	@touch $@

$(VENV)/installed-dev: requirements-dev.txt $(VENV)/installed
	@echo "Installing what the tests need"
	@$(PIP) -r requirements-dev.txt -r examples/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
