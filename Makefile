# Everything runs in a virtual environment that these rules make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH ?= speed
FRAMEWORKS := .venv-frameworks
# 'make frameworks NAMES="langgraph autogen"' runs some of them only.
NAMES ?= $(patsubst tests/frameworks/environments/%.txt,%,$(wildcard tests/frameworks/environments/*.txt)) vercel
OPTIONAL := .venv-optional
TOOLS := .venv-tools
BUILD := .venv-build
LOCAL := packages/agentunit-local
LARGE := packages/agentunit-local-large
# 'make optional PARTS=torch' runs one of them only.
PARTS ?= $(patsubst tests/optional/%.txt,%,$(wildcard tests/optional/*.txt))
ENVIRONMENTS := $(NAMES:%=$(FRAMEWORKS)/%/.ready)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PRECIOUS: $(OPTIONAL)/%/.ready
.PHONY: help demo large test lint unit frameworks optional docs api site viewer validity bench torture clean
.PHONY: lock oldest newest audit release mutants

help:
	@echo "make demo       score a bundled recording (needs Python 3.10+ and pip; offline after install)"
	@echo "make large      add the larger local model, which metrics then take by themselves"
	@echo "make test       linters, types, layers, docs and all tests"
	@echo "make frameworks run agents of real frameworks, each in an environment of its own (minutes; no model is called)"
	@echo "make optional   test the parts that need torch, RAGAS, PostgreSQL, a browser, a speech recognizer, a language model or pip, each by itself"
	@echo "make docs       write the generated pages of docs/ anew"
	@echo "make api        write docs/api.txt anew, the public interface: then CHANGELOG.md says what changed"
	@echo "make site       build the docs as a site that opens offline: build/site/index.html"
	@echo "make viewer     build the pages of the viewer anew (needs Node and npm; ARGS=--check: only compare)"
	@echo "make validity   measure scores against people's labels (folder: AGENTUNIT_DATA; ARGS='--only faithfulness': a part)"
	@echo "make bench      measure speed (BENCH=store, traces, privacy, multiagent, sustainability, multimodal,"
	@echo "                judge, local, gpu, scale, viewer, drift: of these parts); 'make bench ARGS=--install-peers' adds other tools beside it"
	@echo "make oldest     run tests with the oldest dependencies that are allowed (TESTS=tests/core: a part); make newest: with the newest"
	@echo "make lock       write locks/ anew (ARGS=--upgrade: take the newest versions)"
	@echo "make audit      known vulnerabilities, risky code, workflows and metadata; what needs an index is skipped without one"
	@echo "make mutants    change the code in small ways and see whether tests notice (ARGS='--minutes 20 --seed 1')"
	@echo "make release    build wheels, source distributions and bills of materials twice, try them, and stop before uploading"
	@echo "make torture    kill it, fill its disk, feed it garbage: what is lost? (15 minutes; FULL=1: hours; writes docs/reliability.md, benchmarks/torture/RESULTS.md)"
	@echo "make clean      remove the virtual environment and caches"

demo: $(VENV)/.base
	@$(BIN)/agentunit show demo
	@echo "to use it in this shell: source $(BIN)/activate"

large: $(VENV)/.base
	@$(PIP) install -e $(LARGE)
	@$(BIN)/agentunit doctor | grep "backend local"

test: lint unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m scripts.generate_docs --check

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

# A framework that cannot be installed here and now is skipped, and the tests say so.
frameworks: $(VENV)/.dev
	@$(MAKE) --no-print-directory --keep-going -j 2 $(ENVIRONMENTS) || echo "not all frameworks could be installed"
	AGENTUNIT_FRAMEWORKS=$(FRAMEWORKS) $(BIN)/python -m pytest -m frameworks -rs tests/frameworks

# Each part has an environment of its own, and its tests: tests/optional/PART.txt and tests/optional/PART/. One that cannot be
# installed here and now is skipped, and named.
optional: $(PARTS:%=optional-%)

optional-%: | $(BIN)/python
	@test -f tests/optional/$*.txt || { echo "there is no part '$*'. Parts: $(patsubst tests/optional/%.txt,%,$(wildcard tests/optional/*.txt))"; exit 2; }
	@if $(MAKE) --no-print-directory $(OPTIONAL)/$*/.ready; \
		then set -x; $(OPTIONAL)/$*/bin/python -m pytest -m optional -rs tests/optional/$*; \
		else echo "SKIPPED $*: what it needs could not be installed"; fi

docs: $(VENV)/.dev
	$(BIN)/python -m scripts.generate_docs

api: $(VENV)/.dev
	$(BIN)/python -m scripts.public_api

lock: $(VENV)/.dev $(TOOLS)/.ready
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(BIN)/python -m scripts.lock $(ARGS)

# Without an index there are no tools: what needs them is skipped, and says so.
oldest newest: $(VENV)/.dev
	@$(MAKE) --no-print-directory $(TOOLS)/.ready || true
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(BIN)/python -m scripts.dependency_bounds $@ $(TESTS)

audit: $(VENV)/.dev
	@$(MAKE) --no-print-directory $(TOOLS)/.ready || true
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(BIN)/python -m scripts.audit $(ARGS)

mutants: $(VENV)/.dev
	$(BIN)/python -m scripts.mutants $(ARGS)

release: $(BUILD)/.ready
	$(BUILD)/bin/python -m scripts.release $(ARGS)

site: $(OPTIONAL)/site/.ready
	NO_MKDOCS_2_WARNING=1 $(OPTIONAL)/site/bin/python -m mkdocs build --strict
	@echo "build/site/index.html opens in a browser, without a server"

# The built files are committed: only who changes viewer/ needs Node.
viewer: viewer/node_modules/.ready
	cd viewer && npm run --silent check && npm test --silent && npm run --silent build -- $(ARGS)

validity: $(VENV)/.dev
	$(BIN)/python -m benchmarks.validity $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.$(BENCH) $(ARGS)

torture: $(VENV)/.dev
	$(BIN)/python -m benchmarks.torture $(if $(FULL),--full) $(ARGS)

clean:
	rm -rf $(VENV) $(FRAMEWORKS) $(OPTIONAL) $(TOOLS) $(BUILD) .venv-bounds build dist .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "there is no '$(PYTHON)' here. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "AgentUnit needs Python 3.10 or newer; '$(PYTHON)' is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "no virtual environment could be made: is the package python3-venv installed?"; exit 2; }

$(VENV)/.base: pyproject.toml $(LOCAL)/pyproject.toml | $(BIN)/python
	@echo "installing AgentUnit into $(VENV) (a minute at most) …"
	@$(PIP) install -e . -e $(LOCAL)
	@touch $@

$(VENV)/.dev: pyproject.toml $(LOCAL)/pyproject.toml | $(BIN)/python
	@echo "installing AgentUnit and the tools it is tested with into $(VENV) (a minute or two) …"
# LOCKED=1 installs what locks/ names, with hashes; without it, the newest that pyproject.toml allows.
ifdef LOCKED
	@$(PIP) install --require-hashes -r locks/dev.txt
	@$(PIP) install --no-deps -e . -e $(LOCAL)
else
	@$(PIP) install -e ".[dev]" -e $(LOCAL)
endif
	@touch $@ $(VENV)/.base

# Tools that have nothing to do with the packages under test, as locked.
$(TOOLS)/.ready $(BUILD)/.ready: .venv-%/.ready: locks/%.txt | $(BIN)/python
	@echo "installing $* into .venv-$* …"
	@$(BIN)/python -m venv .venv-$*
	@.venv-$*/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r $< \
		|| { rm -rf .venv-$*; echo "$* could not be installed"; exit 1; }
	@touch $@

$(FRAMEWORKS)/%/.ready: tests/frameworks/environments/%.txt pyproject.toml | $(BIN)/python
	@echo "installing $* into $(FRAMEWORKS)/$* …"
	@$(BIN)/python -m venv $(FRAMEWORKS)/$*
	@$(FRAMEWORKS)/$*/bin/python -m pip --disable-pip-version-check --quiet install -e ".[otel]" -r $< \
		|| { rm -rf $(FRAMEWORKS)/$*; echo "$* could not be installed"; exit 1; }
	@touch $@

# The packages of Node; without npm its test is skipped.
$(FRAMEWORKS)/vercel/.ready: tests/frameworks/environments/vercel.json
	@command -v npm > /dev/null || { echo "vercel could not be installed: it needs Node and npm"; exit 1; }
	@echo "installing vercel into $(FRAMEWORKS)/vercel …"
	@mkdir -p $(FRAMEWORKS)/vercel && cp $< $(FRAMEWORKS)/vercel/package.json
	@npm install --prefix $(FRAMEWORKS)/vercel --no-audit --no-fund --silent \
		|| { rm -rf $(FRAMEWORKS)/vercel; echo "vercel could not be installed"; exit 1; }
	@touch $@

viewer/node_modules/.ready: viewer/package-lock.json
	@command -v npm > /dev/null || { echo "the viewer is built with Node and npm, which are not here"; exit 2; }
	cd viewer && npm ci --no-audit --no-fund --silent
	@touch $@

$(OPTIONAL)/%/.ready: tests/optional/%.txt pyproject.toml $(LOCAL)/pyproject.toml | $(BIN)/python
	@echo "installing $* into $(OPTIONAL)/$* …"
	@$(BIN)/python -m venv $(OPTIONAL)/$*
	@$(OPTIONAL)/$*/bin/python -m pip --disable-pip-version-check --quiet install -r $< -e . -e $(LOCAL) hypothesis pytest \
		|| { rm -rf $(OPTIONAL)/$*; echo "$* could not be installed"; exit 1; }
	@if test -f tests/optional/$*/no-deps.txt; then \
		$(OPTIONAL)/$*/bin/python -m pip --disable-pip-version-check --quiet install --no-deps -r tests/optional/$*/no-deps.txt \
		|| { rm -rf $(OPTIONAL)/$*; echo "$* could not be installed"; exit 1; }; \
	fi
	@touch $@
