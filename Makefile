# Two commands are all a newcomer needs: `make demo` and `make test`.
# The work itself is in scripts/, where CI calls it too.

.DEFAULT_GOAL := help
.PHONY: help demo test check clean

help:
	@echo "make demo    install into .venv and measure the built-in mock engine (about a minute)"
	@echo "make test    install into .venv, then formatting, lint, types and the tests"
	@echo "make check   formatting, lint and types only"
	@echo "make clean   remove .venv and every cache; the runs in reports/ stay"

# Stamps: the second call installs nothing unless the dependencies have changed.
.venv/.installed: pyproject.toml scripts/setup
	@scripts/setup
	@touch $@

.venv/.installed-dev: pyproject.toml scripts/setup
	@scripts/setup --dev
	@touch $@ .venv/.installed

demo: .venv/.installed
	@.venv/bin/enginebench run scenarios/quickstart.yaml

test: .venv/.installed-dev
	@scripts/check
	@scripts/test

check: .venv/.installed-dev
	@scripts/check

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests scripts examples -type d -name __pycache__ -prune -exec rm -rf {} +
