# The targets that people and .ci/run use. "make help" prints them.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
TESTFLAGS   ?=
BENCHSTAT   ?= golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
SAMPLES     ?= 6
# A count of inputs: with a time, the last input may be cut off, and then the target fails.
FUZZTIME    ?= 10000x
BENCHTIME   ?= 1s

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/lockfault, with all of its parts
	$(GO) build -o bin/lockfault ./cmd/lockfault-full

# Tests of as many packages run at a time: those that take long mostly wait.
PACKAGES ?= 4

# How long the tests of a package may take: a machine that has other things to do is
# no failure.
TIMEOUT ?= 2h

# Under the race detector every process takes a second to end, unless it is told not to.
RACED = GORACE="$${GORACE:-atexit_sleep_ms=50}" $(GO) test -race

# What go test would have vetted, for each of its runs anew with all that is imported,
# go vet looks at once.
TESTED = -vet=off -timeout $(TIMEOUT) $(TESTFLAGS)

# The tests of quick packages that make test leaves to make check: they start servers of other services
# or containers, or take ten seconds of processor or longer.
LEFT_OUT = ^Test(Service|Container|Slow)

.PHONY: test
test: redis-server ## run all tests of virtual time and of redis-server but for those that take long
	$(GO) vet ./...
	$(GO) test -p $(PACKAGES) $(TESTED) -skip '$(LEFT_OUT)' $$(.ci/packages quick)
	$(MAKE) --no-print-directory agree-first

.PHONY: test-raced
test-raced: redis-server ## run the tests of packages where something is concurrent under the race detector
	$(RACED) -p $(PACKAGES) $(TESTED) -skip '$(LEFT_OUT)' $$(.ci/packages raced)

.PHONY: test-services
test-services: redis ## run the tests of other services, of containers, of the modules in examples, and those that take long
	$(GO) test -p 3 $(TESTED) $$(.ci/packages services)
	$(GO) test -p 3 $(TESTED) -run '$(LEFT_OUT)' $$(.ci/packages quick)

.PHONY: check
check: test-raced test-services agree agree-docker check-deploy agree-settled mutate-checker drill fuzz-from-others ## run what make test leaves out: the race detector, services, containers, examples, tests that take long, random scripts, planted bugs, kills, fuzzing

.PHONY: race
race: redis ## run all tests of all packages under the race detector: half an hour or so
	$(RACED) -p $(PACKAGES) $(TESTED) ./...

.PHONY: redis
redis: ## see to it that there are servers to test with: redis-server, etcd, PostgreSQL and ZooKeeper
	@./.ci/servers

.PHONY: redis-server
redis-server: ## see to it that there is a redis-server
	@./.ci/servers redis

# Another seed each time, unless one is given.
SEED  ?=
COUNT ?= 12
RUNS  ?= 1
KILLS ?= 5
BUSY  ?= 0
AGREE  = $(GO) run ./internal/tools/simdiff -lockfault bin/lockfault -keep bin/differing -runs $(RUNS) -busy $(BUSY)

.PHONY: agree
agree: build redis-server ## play some cells in virtual time and on redis-server processes, and see that both agree
	$(AGREE)

.PHONY: agree-first
agree-first: build redis-server ## the first row of agree: half a minute
	$(AGREE) -first

.PHONY: agree-settled
agree-settled: build redis-server ## play COUNT random scripts that leave nothing to chance in virtual time and on redis-server processes, and see that both agree
	$(AGREE) -settled -count $(COUNT) $(if $(SEED),-seed $(SEED))

.PHONY: agree-loaded
agree-loaded: build redis-server ## play the cells of agree ten times with two to six busy processes beside them: none may come out wrong (hours)
	for busy in 2 3 4 5 6; do $(AGREE) -runs 2 -busy $$busy -unknown 20 || exit; done

# Where there is no engine, that is said, and nothing else is wrong.
.PHONY: agree-docker
agree-docker: build redis-server ## play some cells in virtual time and in containers, where an engine answers, and see that both agree
	@$(GO) build -o bin/redis-image ./internal/tools/redis-image
	@status=0; ./bin/redis-image || status=$$?; \
	case $$status in \
	0) $(AGREE) -world docker -- --image lockfault/redis:local --jobs 4 ;; \
	3) echo "nothing was played in containers" ;; \
	*) exit $$status ;; \
	esac

.PHONY: test-real
test-real: build redis-server ## play every cell in virtual time and on redis-server processes, and see that both agree and that histories show what the report says
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && \
	./bin/lockfault run --world sim,process --out "$$out" && \
	./bin/lockfault report "$$out" --recheck && \
	./bin/lockfault run --world sim,process --promote-by sentinel --out "$$out"

# How many scenarios test-drawn plays; others each time.
DRAWN ?= 10

.PHONY: test-drawn
test-drawn: build redis-server ## what test-real does, with DRAWN scenarios of the library, others each time, and one of failover with sentinels
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && \
	drawn=$$(ls scenarios/library | sed "s/[.]txt//" | shuf -n $(DRAWN) | paste -sd, -) && \
	failover=$$(ls scenarios/library | sed "s/[.]txt//" | grep failover | shuf -n 1) && \
	echo "drawn: $$drawn; with sentinels: $$failover" && \
	./bin/lockfault run --world sim,process --scenario "$$drawn" --out "$$out" && \
	./bin/lockfault report "$$out" --recheck && \
	./bin/lockfault run --world sim,process --promote-by sentinel --scenario "$$failover" --out "$$out"

.PHONY: specimens
specimens: redis ## play what the locks of examples/corpus must show, and must not, in virtual time and all of it on redis-server processes
	$(GO) test -v -count 1 -timeout 1h ./examples -run 'FaultyLocks|SoundLocks' -all

.PHONY: long
long: test-real agree-loaded test-docker race prove-checker enumerate-checker mutate-checker specimens tables seeds ## what takes hours: the agreement table beside busy processes, 500 settled scripts, every cell in containers, a million histories of each kind and every small one for the lock checker, all bugs that are planted, all specimens on real servers, all searches with and without tables, fifty kills of a shared soak
	$(AGREE) -settled -count 250 -runs 2 -unknown 2 $(if $(SEED),-seed $(SEED))
	$(MAKE) drill KILLS=50
	$(MAKE) kills KILLS=50

.PHONY: test-docker
test-docker: build image ## play every cell in virtual time and in containers, and see that both agree: half an hour or so
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && \
	./bin/lockfault run --world sim,docker --image lockfault/redis:local --out "$$out"

.PHONY: bench
bench: ## run the benchmarks of docs/benchmarks.md, and compare them with benchstat
	@mkdir -p bin
	$(GO) test -run '^$$' -bench Command -benchmem -count $(SAMPLES) ./faults/sim >bin/command.txt
	$(GO) run $(BENCHSTAT) -col /via bin/command.txt
	$(GO) test -run '^$$' -bench Cell -count $(SAMPLES) ./internal/harness >bin/cell.txt
	$(GO) run $(BENCHSTAT) bin/cell.txt
	$(GO) test -run '^$$' -bench Run -benchtime 3x -count $(SAMPLES) ./cmd/lockfault >bin/run.txt
	$(GO) run $(BENCHSTAT) bin/run.txt

.PHONY: bench-real
bench-real: build redis-server ## measure what the locks and the gate cost on redis-server, and write the page and plot
	./bin/lockfault bench --format markdown --svg bin/benchmarks-real.svg >bin/benchmarks-real.md
	mv bin/benchmarks-real.md bin/benchmarks-real.svg docs/

.PHONY: fuzz-short
fuzz-short: ## run every fuzz target on FUZZTIME inputs
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$package; \
		done; \
	done

# What comes from others: items and answers of a queue, journals, checkpoints, results, scripts and
# the names of their files.
FROM_OTHERS = ./internal/queue/item:FuzzItem ./internal/cli/cells:FuzzAnswer ./reports:FuzzJournal ./reports:FuzzScan \
	./internal/explore:FuzzJournal ./internal/explore:FuzzBlocks ./scenarios:FuzzParse ./scenarios:FuzzFileName

.PHONY: fuzz-from-others
fuzz-from-others: ## run the fuzz targets of what comes from others on FUZZTIME inputs
	@set -e; for target in $(FROM_OTHERS); do \
		echo "$$target"; \
		$(GO) test -run '^$$' -fuzz "^$${target#*:}\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $${target%:*}; \
	done

.PHONY: lint
lint: ## run gofmt, vet, staticcheck and the import rule
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	for module in examples/*/go.mod; do $(GO) -C $$(dirname $$module) vet ./... || exit 1; done
	$(GO) run $(STATICCHECK) ./...
	$(GO) test ./internal/importrule

.PHONY: fmt
fmt: ## format the Go files and the library's scripts
	gofmt -w .
	$(GO) run ./cmd/lockfault fmt -w scenarios/library/*.txt

.PHONY: image
image: ## build lockfault/redis:local out of the installed redis-server, for the world docker without a registry
	$(GO) run ./internal/tools/redis-image

.PHONY: matrix
matrix: ## play every strategy under every scenario, and put the table into README.md
	./.ci/matrix README.md

.PHONY: pictures
pictures: ## play every cell, and take the pictures of its report that docs/reports.md shows; .ci/viewers installs the browser
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && $(GO) run ./cmd/lockfault run --quiet --out "$$out/report" && \
	$(GO) test -count 1 ./reports/page -run TestPictures -report "$$out/report"

.PHONY: findings
findings: build redis ## search every strategy with the same few budgets, play what is found on redis-server, and write docs/findings.md: 20 minutes or so
	$(GO) run ./internal/tools/genfindings -lockfault bin/lockfault >bin/findings.md
	mv bin/findings.md docs/findings.md

.PHONY: track-record
track-record: redis ## play the known defects of other people's lock libraries in virtual time and on redis-server, and write docs/track-record.md: two minutes
	@mkdir -p bin
	$(GO) -C examples/knownbugs build -o ../../bin/trackrecord .
	$(GO) run ./internal/tools/knownbugs -lockfault bin/trackrecord >bin/track-record.md
	mv bin/track-record.md docs/track-record.md

.PHONY: tables
tables: ## compare every search of the tests with tables and without, and what goes on with what is played at once: minutes; make test compares some, others each time
	$(GO) test -v -count 1 -timeout 1h ./internal/explore -run 'TablesLoseNothing|GoesOnAsIfPlayedAtOnce' -all

.PHONY: seeds
seeds: ## play every cell in virtual time with twenty seeds; make test plays four of them, others each time
	$(GO) test -v -count 1 -timeout 1h ./internal/harness/registrytest -run EverySeedAgrees -all

.PHONY: bench-explore
bench-explore: build redis ## measure what searches cost, and how soon several ways of looking find one failure: docs/benchmarks.md has what it printed
	$(GO) run ./internal/tools/benchexplore -lockfault bin/lockfault

.PHONY: dist
dist: ## build archives for Linux, macOS and Windows into bin/dist, the same bytes each time, with checksums and SBOMs
	examples/deploy/dist

.PHONY: tool-image
tool-image: ## build the container image lockfault/lockfault:local of the program alone
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && cp examples/deploy/Dockerfile "$$out" && mkdir "$$out/empty" && \
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o "$$out/lockfault" ./cmd/lockfault-full && \
	docker build --quiet --tag lockfault/lockfault:local "$$out"

.PHONY: bench-soak
bench-soak: ## measure how many hours of virtual time a soak plays in a second, on one processor
	GOMAXPROCS=1 GOGC=400 $(GO) test ./internal/soak -run '^$$' -bench Window -benchtime 10x -benchmem

.PHONY: test-checker
test-checker: ## compare the lock checker with porcupine on 100,000 histories of each kind
	$(GO) test ./checker/linear -run TestPorcupine -rapid.checks=100000 -v

.PHONY: prove-checker
prove-checker: ## the same on 1,000,000 histories of each kind, and those that porcupine has no model for with the naive oracle
	GOGC=1000 $(GO) test ./checker/linear -run TestPorcupine -rapid.checks=1000000 -v -timeout 6h
	for spec in mutex-tokens read-write by-server fenced,strict; do \
		states=0; [ $$spec != fenced,strict ] || states=5000; \
		GOGC=1000 $(GO) test ./checker/linear -run 'TestRandom$$' -v -timeout 6h -histories 1000000 -spec $$spec -states $$states || exit; \
	done

.PHONY: enumerate-checker
enumerate-checker: ## compare the lock checker with the naive oracle on every history of two clients up to eight events and of three up to seven
	GOGC=2000 $(GO) test ./checker/linear -run 'TestEnumerate$$/^(mutex|mutex-strict|mutex-tokens.*|reentrant.*|lease.*|semaphore.*|read-write.*)$$' -v -timeout 6h -sizes 8,7
	GOGC=2000 $(GO) test ./checker/linear -run 'TestEnumerate$$/^(multi.*|fenced.*)$$' -v -timeout 12h -sizes 8,7 -descents 7,6

.PHONY: cover-checker
cover-checker: ## show which parts of the lock checker random histories reach
	@mkdir -p bin
	$(GO) test ./checker/linear -run 'TestRandom$$|TestPorcupine' -coverprofile bin/checker.cover -rapid.checks=2000 -histories 1000
	@$(GO) tool cover -func bin/checker.cover

.PHONY: check-deploy
check-deploy: ## decode what is in examples/deploy/ strictly, and run it in containers where an engine answers
	$(GO) -C examples/deploy/check vet ./...
	$(GO) -C examples/deploy/check test -v -count=1 -timeout 15m ./...

.PHONY: drill
drill: build ## end servers, workers and the publisher of a soak on a queue by kill -9, KILLS times, and see that every window is counted once
	$(GO) run ./internal/tools/killtest -lockfault bin/lockfault -kills $(KILLS) $(if $(SEED),-seed $(SEED))

.PHONY: kills
kills: ## kill processes of runs on Redis, etcd, PostgreSQL and containers at random moments, KILLS times, and see that nothing is left
	$(GO) test ./internal/cli -run 'Kills$$' -v -count 1 -timeout 2h -killruns $(KILLS) $(if $(SEED),-killseed $(SEED))

.PHONY: bench-queue
bench-queue: build ## measure what a queue costs, with one worker and with up to eight: some ten minutes
	$(GO) run ./internal/tools/benchqueue -lockfault bin/lockfault

.PHONY: mutate-checker
mutate-checker: ## plant bugs into the lock checker, all or MUTANTS of them, and see its tests catch each
	$(GO) test ./checker/linear -run TestMutants -mutate -v -timeout 30m $(if $(MUTANTS),-mutants $(MUTANTS)) $(if $(SEED),-draw $(SEED))

.PHONY: bench-checker
bench-checker: ## run the lock checker's benchmarks beside porcupine's
	$(GO) test ./checker/linear -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME)

.PHONY: versus-checker
versus-checker: OPS ?= 1000
versus-checker: PATIENCE ?= 1s
versus-checker: ## judge traffic of OPS operations of every specification beside porcupine, which has the time PATIENCE for each
	$(GO) test ./checker/linear -run TestSlowVersus -v -timeout 12h -ops $(OPS) -patience $(PATIENCE)

.PHONY: measure-checker
measure-checker: ## measure the lock checker and porcupine, and write the page and plot
	GOMAXPROCS=1 $(GO) test ./checker/linear -run TestMeasure -update -v
