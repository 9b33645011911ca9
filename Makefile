# CodeSpace. `make` lists the targets.

GO       ?= go
FUZZTIME ?= 10s
BENCH    ?= -n 100

# runc_nocriu leaves checkpointing out of libcontainer; osusergo and netgo keep
# the helper from loading libraries at run time, so that it can be static.
TAGS     := seccomp runc_nocriu osusergo netgo
VERSION  := $(shell git describe --always --dirty 2>/dev/null || echo unversioned)
BUILD    := $(GO) build -trimpath -buildvcs=false
STAMP    := -X main.version=$(VERSION)
TEST     := $(GO) test -tags "$(TAGS)"

SHELL := /bin/bash

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help setup build test lint fuzz bench golden demo boundary check format

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what building and testing need from the system
	@bash .ci/setup

build: setup ## build the four programs in bin/
	@mkdir -p bin
	CGO_ENABLED=0 $(BUILD) -ldflags '$(STAMP)' -o bin/ ./cmd/codespace ./cmd/codespace-runner ./cmd/codespace-patch
	CGO_ENABLED=1 $(BUILD) -tags "$(TAGS)" -ldflags '$(STAMP) -linkmode external -extldflags "-static"' -o bin/ ./cmd/codespace-helper

test: build format boundary ## everything: the suite as root and as a plain user
	$(GO) vet -tags "$(TAGS)" ./...
	@$(GO) run ./tests/suite -tags "$(TAGS)"

format:
	@found=$$(gofmt -l .); [ -z "$$found" ] || { echo "not gofmt'd: $$found"; exit 1; }

boundary: ## imports, links, sizes and descriptors against the plan
	@$(GO) test -count=1 -v ./tests/architecture | grep -v -e '^=== ' -e '^    --- PASS'; \
		exit $${PIPESTATUS[0]}

lint: format ## gofmt, vet, tidy, staticcheck
	$(GO) vet -tags "$(TAGS)" ./...
	$(GO) mod tidy -diff
	$(GO) run $(STATICCHECK) -tags "$(TAGS)" ./...

fuzz: ## run every fuzz target for FUZZTIME
	@for pkg in $$($(GO) list -tags "$(TAGS)" ./...); do \
		targets=$$($(TEST) -list '^Fuzz' $$pkg) || exit 1; \
		for target in $$(grep '^Fuzz' <<<"$$targets"); do \
			echo "$$pkg $$target"; $(TEST) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

bench: build ## measure against the baselines, in one run
	@$(GO) run ./tests/bench $(BENCH) bin

golden: ## rewrite the golden files of the MCP surface
	$(TEST) ./gateway/mcpserver -update

demo: build ## see it work
	@$(GO) run ./tests/demo bin/codespace

check: lint boundary test ## everything that must hold before a commit
