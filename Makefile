# The targets that people and .ci/run use. "make help" prints them.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
TESTFLAGS   ?=
BENCHTIME   ?= 1s
FUZZTIME    ?= 10s

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/lockfault
	$(GO) build -o bin/lockfault ./cmd/lockfault

.PHONY: test
test: ## run all tests under the race detector, and every cell with twenty seeds without it
	$(GO) test -race $(TESTFLAGS) ./...
	$(GO) test $(TESTFLAGS) -run 'TestEverySeedAgrees|TestEveryLeaseAgrees' ./harness

.PHONY: bench
bench: ## run the benchmarks; BENCHTIME=5s for steadier numbers
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

.PHONY: fuzz-short
fuzz-short: ## run every fuzz target for FUZZTIME
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

.PHONY: lint
lint: ## run gofmt, vet, staticcheck and the import rule
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) test ./internal/rooms

.PHONY: fmt
fmt: ## format the Go files and the library's scripts
	gofmt -w .
	$(GO) run ./cmd/lockfault fmt -w scenarios/library/*.txt

.PHONY: matrix
matrix: ## play every strategy under every scenario, and put the table into README.md
	./.ci/matrix README.md
