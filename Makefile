.PHONY: install run test lint typecheck bench conformance messages
export PATH := $(CURDIR)/.venv/bin:$(PATH)

install:  ## environment for development
	@sh -c '. scripts/lib.sh; environment_make requirements-dev.txt'

run:  ## the demo on 127.0.0.1:8000
	@sh scripts/demo

test:  ## every test
	@sh scripts/test

lint: install
	ruff check .
	ruff format --check .
	lint-imports
	python manage.py makemigrations --check --dry-run

typecheck: install
	mypy agentops apps examples conftest.py

bench: install  ## figures of docs/benchmarks.md
	python -m agentops.bench

conformance:  ## the MCP conformance suite's own summaries
	@sh scripts/conformance client

messages: install  ## collect and compile translations
	python manage.py makemessages -l pt_BR --ignore .venv --ignore var --no-obsolete --no-location
	python manage.py compilemessages -l pt_BR --ignore .venv
