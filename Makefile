# Tasks of this checkout. `make` alone lists them.
# Set-up is automatic: a machine with Python 3.11 or newer is enough.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# The interpreter .venv is made from.
PYTHON ?= python3
# Test processes side by side: a number, or one per core.
JOBS ?= auto
PY := .venv/bin/python

# Two levels of set-up in the same .venv: what Lamina runs with, and that plus the tools that check it.
set_up = @command -v "$(PYTHON)" >/dev/null 2>&1 \
	|| { echo "lamina: there is no $(PYTHON) here: install Python 3.11 or newer, or name yours with PYTHON=..." >&2; exit 1; }; \
	"$(PYTHON)" scripts/set_up.py

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  Variables: PYTHON=$(PYTHON)  JOBS=$(JOBS)  NAME=<benchmark or story>  LAWS=<1: soak without fuzzing>  VERSION=<release>"

.PHONY: runtime dev
runtime:
	$(set_up) runtime
dev:
	$(set_up) dev

.PHONY: demo
demo: runtime ## Take the tour: three small clusters, step by step
	@.venv/bin/lamina demo

.PHONY: test
test: dev ## Run the tests
	@$(PY) scripts/run_tests.py -n $(JOBS) --dist worksteal

.PHONY: lint
lint: dev ## Check format, style, types and walls
	@start=$$(date +%s); failed=; \
	$(PY) -m ruff format --check --quiet . || failed="$$failed format"; \
	$(PY) -m ruff check --quiet . || failed="$$failed style"; \
	$(PY) -m mypy || failed="$$failed types"; \
	.venv/bin/lint-imports --no-logo || failed="$$failed walls"; \
	echo "lint: $${failed:+failed in$$failed, }$$(( $$(date +%s) - start )) s"; \
	test -z "$$failed"

# Both run even if the first fails, so that one run shows all failures; pytest's summary comes last.
.PHONY: check
check: ## Run lint, then test: what has to pass before a change is done
	@lint=0; $(MAKE) --no-print-directory lint || lint=$$?; \
	$(MAKE) --no-print-directory test && exit $$lint

.PHONY: docs-check
docs-check: dev ## Run the commands of all pages, and follow their links
	@$(PY) scripts/check_docs.py

.PHONY: format
format: dev ## Format the code
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix --exit-zero --quiet .

.PHONY: bench
bench: dev ## List the benchmarks; NAME=x runs one
	@$(PY) scripts/bench.py $(if $(NAME),"$(NAME)")

.PHONY: calibration
calibration: dev ## Compare the pull model with pulls of real clusters; draws docs/calibration.svg and writes docs/calibration.md
	@$(PY) scripts/bench.py calibration

.PHONY: e2e
e2e: dev ## List the end-to-end stories; NAME=x runs one
	@$(PY) scripts/e2e.py $(if $(NAME),"$(NAME)")

.PHONY: parity
parity: dev ## Compare decisions with recorded answers of the real kube-scheduler; ends with a line of JSON
	@$(PY) scripts/parity.py

.PHONY: parity-record
parity-record: dev ## Record these answers again; VERSION=x.y.z chooses the kube-scheduler
	@$(PY) scripts/parity_record.py $(VERSION)

.PHONY: testbed
testbed: dev ## Build the real Kubernetes programs that tests run against, and print where they are
	@$(PY) -m testbed build

# LAWS=1 omits fuzzing and the tests marked soak. Environment variables set how many examples each law tries.
.PHONY: soak
soak: dev ## Run the long tests: laws with many examples, tests marked soak, ten minutes of fuzzing each; LAWS=1: only the laws
	@LAMINA_SCHEDULES=$${LAMINA_SCHEDULES:-100000} LAMINA_HISTORIES=$${LAMINA_HISTORIES:-10000} LAMINA_FUZZ_SECONDS=$${LAMINA_FUZZ_SECONDS:-600} \
	$(PY) -m pytest -n $(JOBS) --dist worksteal --hypothesis-profile=soak --timeout=0 -m $(if $(LAWS),"hypothesis and not fuzz","soak or hypothesis or fuzz")

.PHONY: dist
dist: dev ## Build wheel and sdist, install each into an empty environment and run it; ends with a line of JSON
	@$(PY) scripts/dist.py

.PHONY: image
image: dev ## Build the image with buildah, podman or docker, twice, and compare; ends with a line of JSON
	@$(PY) scripts/image.py

.PHONY: wheels
wheels: dev ## Fetch the wheels that deploy/Containerfile copies, for a build of the image by hand
	@$(PY) scripts/image_inputs.py

.PHONY: manifests
manifests: dev ## Render the manifests of deploy/ from deploy/chart; needs helm
	@$(PY) scripts/render_manifests.py

.PHONY: walls
walls: dev ## Break every import contract on purpose and check that the linter reports it
	@$(PY) scripts/check_walls.py

.PHONY: picture
picture: dev ## Draw the README's pictures again: from a real run, and from the table in docs/policy.md
	@$(PY) scripts/picture.py
	@$(PY) scripts/gains_picture.py

.PHONY: changelog
changelog: dev ## Show the next release's notes; VERSION=x.y.z writes them
	@$(PY) -m towncrier build $(if $(VERSION),--yes --version "$(VERSION)",--draft --version next)

.PHONY: clean
clean: ## Remove .venv and everything that was generated
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
