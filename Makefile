# Each command makes the virtual environment it needs, once. `make help` lists them.

# The interpreter: `make test PYTHON=python3.12`. A name that does not run from PATH (pyenv has shims for versions
# that are not switched on) is looked for among pyenv's versions.
ifndef PYTHON
PYTHON := $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
endif
PYENV_VERSIONS := $(shell pyenv root 2>/dev/null || echo "$$HOME/.pyenv")/versions
RUNNABLE := $(shell for p in "$(PYTHON)" "$(PYENV_VERSIONS)"/*/bin/"$(PYTHON)"; do \
	"$$p" -c '' 2>/dev/null && echo "$$p" && break; done)
VERSION := $(shell test -z "$(RUNNABLE)" || "$(RUNNABLE)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

DEMO := .venv-demo
TEST := .venv-test-$(VERSION)
OLDEST := .venv-test-oldest
BENCH := .venv-bench
NEUTRAL := .venv-dlio
PACKAGE := .venv-package
DOCS := .venv-docs

PIP := -m pip install -qq --disable-pip-version-check
TORCH := torch==2.13.0
BEST_EFFORT := jax tensorflow tinygrad  # extras that the tests use where they install
# In whose loops the drop-in for torch's loader is tested; installed beside $(TORCH), so that they bring no other.
LOOPS := lightning-fabric==2.6.6 lightning==2.6.6 accelerate==1.15.0 transformers==5.22.0 torchdata==0.11.0
RAY := ray[default]==2.60.0
# The browser that the page is tested in; only where we may install it.
INSTALL_CHROMIUM := { test "$$(id -u)" = 0 && echo "installing chromium (half a minute the first time)" && \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >&2
MINUTES ?= 5
ONLY ?=
# Tests that run side by side: one more than there are cores, as many wait for a process to start.
JOBS ?= $(shell expr $$(nproc) + 1)

.PHONY: help demo test test-all test-oldest coverage bench bench-neutral soak simulate package docs docs-serve lint format clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO)/.ready  ## train a small classifier, with Stoker and without
	@$(DEMO)/bin/stoker demo

# Those on Ray have a cluster, which they share, and so are run by one process, after all others.
test: lint  ## lint, types and tests: what a change must pass
	$(TEST)/bin/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/ray
	$(TEST)/bin/python -m pytest tests/ray

test-all: lint  ## the same with the exhaustive matrices: before an issue is resolved
	$(TEST)/bin/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/ray -m ""
	$(TEST)/bin/python -m pytest tests/ray -m ""

# Without frameworks, which need newer ones.
test-oldest: $(OLDEST)/.ready  ## the same with the oldest versions of the libraries that Stoker allows
	$(OLDEST)/bin/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/ray

# But for tests of interrupts at every moment: while each line is traced, those never end.
coverage: $(TEST)/.ready  ## how much of src the tests reach, in workers too
	$(TEST)/bin/python -m coverage run -m pytest -n $(JOBS) --dist worksteal --ignore tests/ray \
		-k "not storm and not whatever_interrupts and not ctrl_c_at_any_moment"
	$(TEST)/bin/python -m coverage combine -q
	$(TEST)/bin/python -m coverage report

lint: $(TEST)/.ready  ## ruff and mypy
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/mypy

format: $(TEST)/.ready  ## let ruff lay out the code and mend what it can
	$(TEST)/bin/ruff check --fix .
	$(TEST)/bin/ruff format .

bench: $(BENCH)/.ready  ## Stoker beside other loaders and the limit
	$(BENCH)/bin/python -m benchmarks

bench-neutral: $(NEUTRAL)/.ready  ## Stoker in benchmarks of others, DLIO and SPDL's: ONLY=dlio
	$(NEUTRAL)/bin/python -m benchmarks.neutral $(ONLY)

soak: $(TEST)/.ready  ## hours in minutes: MINUTES=5
	$(TEST)/bin/python -m tests.soak --minutes $(MINUTES)

simulate: $(TEST)/.ready  ## a cluster that does not exist: 1,000 nodes, 10,000 consumers
	$(TEST)/bin/python -m benchmarks.simulate

# The wheel is made from the sdist, as installers that find no wheel do, and tried where nothing else is installed.
package:  ## build sdist and wheel into dist/, and try the wheel in a clean environment
	$(call make-venv,$(PACKAGE))
	@rm -rf dist $(PACKAGE)-try
	@$(PACKAGE)/bin/python $(PIP) build twine
	$(PACKAGE)/bin/python -m build --outdir dist .
	$(PACKAGE)/bin/python -m twine check --strict dist/*
	@"$(RUNNABLE)" -m venv $(PACKAGE)-try
	@$(PACKAGE)-try/bin/python $(PIP) dist/*.whl
	cd dist && ../$(PACKAGE)-try/bin/python -I ../tests/package/try_installed.py

# Warnings are errors: a link that leads nowhere, a name that the Reference lacks.
docs: $(DOCS)/.ready  ## build the site into build/site; a broken link fails
	@$(DOCS)/bin/python docs/stage.py
	@$(DOCS)/bin/zensical build --strict --clean
	@echo "open build/site/index.html"

docs-serve: $(DOCS)/.ready  ## show the site while you write
	@$(DOCS)/bin/python docs/stage.py $(DOCS)/bin/zensical serve

clean:  ## remove environments and caches
	rm -rf .cache .venv-demo .venv-bench .venv-dlio .venv-docs .venv-package* .venv-test-* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp file stands for a finished environment; a change of what it was made from makes it again.

$(DEMO)/.ready: pyproject.toml
	$(call make-venv,$(DEMO))
	@echo "installing stoker[demo] into $(DEMO) (half a minute the first time)"
	@$(DEMO)/bin/python $(PIP) -e '.[demo]'
	$(call compile,$(@D))
	@touch $@

$(TEST)/.ready: pyproject.toml tests/requirements.txt
	$(call make-venv,$(TEST))
	@command -v chromium >/dev/null || $(INSTALL_CHROMIUM) || \
		echo "chromium IS NOT INSTALLED: the tests of the page in a browser will be skipped"
ifeq ($(VERSION),3.11)
	@echo "installing $(TORCH) into $(TEST) (1-2 minutes the first time)"
	@$(TEST)/bin/python $(PIP) $(TORCH)
endif
	@echo "installing stoker and the test tools into $(TEST) (about a minute the first time)"
	@$(TEST)/bin/python $(PIP) -e . -r tests/requirements.txt
ifeq ($(VERSION),3.11)
	@for extra in $(BEST_EFFORT); do \
		echo "installing stoker[$$extra] into $(TEST) (half a minute the first time)"; \
		$(TEST)/bin/python $(PIP) -e ".[$$extra]" || echo "$$extra DID NOT INSTALL: its tests will be skipped"; \
	done
	@echo "installing $(LOOPS) into $(TEST) (about a minute the first time)"
	@$(TEST)/bin/python $(PIP) $(TORCH) $(LOOPS) || echo "$(LOOPS) DID NOT INSTALL: their tests will be skipped"
	@echo "installing $(RAY) into $(TEST) (half a minute the first time)"
	@$(TEST)/bin/python $(PIP) $(TORCH) "$(RAY)" || echo "$(RAY) DID NOT INSTALL: its tests will be skipped"
else
	@echo "torch, jax, tensorflow and tinygrad are tested on Python 3.11 only: here their tests will be skipped"
endif
	$(call compile,$(@D))
	@touch $@

$(OLDEST)/.ready: pyproject.toml tests/oldest.txt
	$(call make-venv,$(OLDEST))
	@echo "installing the oldest versions into $(OLDEST) (a minute the first time)"
	@$(OLDEST)/bin/python $(PIP) -e . -r tests/oldest.txt
	$(call compile,$(@D))
	@touch $@

$(BENCH)/.ready: pyproject.toml benchmarks/requirements.txt benchmarks/requirements-alone.txt
	$(call make-venv,$(BENCH))
	@echo "installing $(TORCH) and the other loaders into $(BENCH) (1-2 minutes the first time)"
	@$(BENCH)/bin/python $(PIP) $(TORCH)
	@$(BENCH)/bin/python $(PIP) -e . -r benchmarks/requirements.txt
	@$(BENCH)/bin/python $(PIP) --no-deps -r benchmarks/requirements-alone.txt
	$(call compile,$(@D))
	@touch $@

$(NEUTRAL)/.ready: pyproject.toml benchmarks/neutral/requirements.txt benchmarks/neutral/requirements-alone.txt
	$(call make-venv,$(NEUTRAL))
	@echo "installing $(TORCH), DLIO and SPDL into $(NEUTRAL) (2-3 minutes the first time)"
	@$(NEUTRAL)/bin/python $(PIP) $(TORCH)
	@$(NEUTRAL)/bin/python $(PIP) -e . $(TORCH) -r benchmarks/neutral/requirements.txt
	@$(NEUTRAL)/bin/python $(PIP) --no-deps -r benchmarks/neutral/requirements-alone.txt
	$(call compile,$(@D))
	@touch $@

$(DOCS)/.ready: docs/requirements.txt
	$(call make-venv,$(DOCS))
	@echo "installing the site builder into $(DOCS) (half a minute the first time)"
	@$(DOCS)/bin/python $(PIP) -r docs/requirements.txt
	@touch $@

# Bytecode once and for all: where PYTHONDONTWRITEBYTECODE is set, each start would else compile everything again.
define compile
	@$(1)/bin/python -m compileall -q src tests benchmarks examples
endef

define make-venv
	@test -n "$(RUNNABLE)" || { echo "$(PYTHON) does not run: name another, as in PYTHON=python3.12" >&2; exit 1; }
	@"$(RUNNABLE)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Stoker needs Python 3.11 or newer; $(RUNNABLE) is $(VERSION)" >&2; exit 1; }
	@test -x $(1)/bin/pip || "$(RUNNABLE)" -m venv $(1)
endef
