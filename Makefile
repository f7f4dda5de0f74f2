# kith: everything a contributor runs. Needs Go and make, nothing else. `make` or `make help` lists the targets.

GO       ?= go
BIN      := bin
DURATION ?=
# No package takes two minutes on two idle cores: what is over this hangs, however busy the machine is.
LIMIT    ?= 30m
SEEDS    ?= 500
FIRST    ?=
FUZZTIME ?= 10s
TARGET   ?=
BASE     ?=
PARALLEL ?=
BENCH    ?= .
PKG      ?= ./...
N        ?= 1000
STATES   ?= 1000000
STARTS   ?= 100000
MINUTES  ?= 5
NODES    ?= 5
ROUNDS   ?= 20
SEED     ?=
ARGS     ?=
VERSION  ?=

.DEFAULT_GOAL := help
.PHONY: help run test race storm accounts resolver-proof model forming-proof storm-arm64 upgrade scale timers kill-test chaos failover scale-shards scale-out rolling partitions planted fuzz deploy-check bench bench-e2e bench-peers test-peers test-protobuf test-otel idle-entities pressure doors alerts page-test site check build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: DEV = $(if $(DURATION),--duration=$(DURATION)) $(ARGS)
run: BANK = $(patsubst --durable=%,--store=%,$(filter-out --durable,$(DEV)))
run: SHOWN = $(if $(findstring --durable,$(ARGS)),$(BIN)/bank $(BANK),$(BIN)/kith dev $(DEV))
run: $(if $(findstring --durable,$(ARGS)),build-bank,build) ## run nodes with demo entities, one joins and one leaves; DURATION=20s ends it, else Ctrl-C; ARGS=--durable or --durable=quorum: examples/bank
	@# On a terminal the node is a job of its own, so that Ctrl-C reaches it alone and make reports its exit code.
	@if [ -t 0 ]; then set -m; $(SHOWN); else exec $(SHOWN); fi

# The example is a module of its own, since it links SQLite and Pebble.
.PHONY: build-bank test-bank test-dispatch
build-bank: ## build bin/bank, the example of durable entities
	@mkdir -p $(BIN)
	@cd examples/bank && $(GO) build -o ../../$(BIN)/bank .

.PHONY: build-leases
build-leases: ## build bin/lab-leases: nodes of lab failover and lab chaos with sessions in etcd; links its client
	@mkdir -p $(BIN)
	@cd lease/kith && $(GO) build -o ../../$(BIN)/lab-leases ./lab

test-bank: ## vet and test examples/bank, a module of its own; needs its modules, from the network or the cache
	@cd examples/bank && $(GO) vet ./... && $(GO) test -count=1 -timeout $(LIMIT) ./...

test-dispatch: ## vet and test examples/dispatch, a module of its own; needs its modules, from the network or the cache
	@cd examples/dispatch && $(GO) vet ./... && $(GO) test -count=1 -timeout $(LIMIT) ./...

test: ## vet and run all tests, shuffled; needs no network beyond loopback
	$(GO) vet ./...
	@GO="$(GO)" .ci/tests -shuffle=on -timeout $(LIMIT) ./...

# The packages that have such tests, but those of nested modules; go test links one program for each.
NESTED = $(patsubst %go.mod,%%,$(filter-out ./go.mod,$(shell find . -name go.mod)))
LONG = $(filter-out $(NESTED),$(sort $(dir $(shell grep -rlF 'long.Test(t)' --include='*_test.go' .))))
.PHONY: test-long
test-long: ## the tests that take minutes, or want the machine for themselves: benchmarks, releases, long storms, real clusters
	KITH_LONG=1 GO="$(GO)" .ci/tests -count=1 -p 1 -timeout $(LIMIT) -run '^TestLong' -skip '^TestLongPlantedMistakes$$' $(LONG)

# What is decided by values alone: no socket, no process, no clock.
PURE = ./wire ./ringbuf ./gossip ./fd/... ./membership ./cluster ./peer ./route ./sbr/... ./shutdown ./stats ./entity \
	./shard/... ./bootstrap/formation ./internal/core/...
.PHONY: quick gate
quick: ## vet, and the tests of the pure packages: for the time between two edits
	$(GO) vet ./...
	$(GO) test -short -shuffle=on $(PURE)

gate: ## all that has to hold before a change is merged, as CI runs it
	@.ci/run

race: ## run all tests under the race detector, with the costly invariant walks on
	$(GO) test -race -shuffle=on -timeout 60m ./...

storm: build ## simulate SEEDS=500 hostile clusters, from a seed that is drawn or FIRST=; a violation prints the seed that replays it
	@$(BIN)/lab storm --seeds=$(SEEDS) $(if $(FIRST),--first=$(FIRST)) $(ARGS)

.PHONY: storm-durable
storm-durable: build ## simulate durable entities over a bad store in SEEDS=500 storms, from FIRST= or a drawn seed; their history is judged
	@$(BIN)/lab storm-durable --seeds=$(SEEDS) $(if $(FIRST),--first=$(FIRST)) $(ARGS)

accounts: build ## storms of heavy traffic and of every way to end, SEEDS=500, from FIRST= or a drawn one: where every accepted message went
	@$(BIN)/lab accounts --seeds=$(SEEDS) $(if $(FIRST),--first=$(FIRST)) $(ARGS)

scale: build ## measure a simulated membership of N=1000 nodes; ARGS=--parts=join,crash picks what
	@$(BIN)/lab scale --nodes=$(N) $(ARGS)

timers: build ## set N=1000000 timers, left alone, under real stalls, and simulated: none may be early; ARGS=--over=60s
	@$(BIN)/lab timers --timers=$(or $(filter-out 1000,$(N)),1000000) --no-stalls $(ARGS)
	@$(BIN)/lab timers --timers=$(or $(filter-out 1000,$(N)),1000000) $(ARGS)
	@$(BIN)/lab timers --timers=$(or $(filter-out 1000,$(N)),1000000) --simulated

storm-arm64: ## the same storm on arm64 under user-mode emulation must leave the same traces; SEEDS=500 FIRST=1
	@GO="$(GO)" .ci/storm-arm64 $(SEEDS) $(or $(FIRST),1)

upgrade: ## a cluster half of which is built from the commit OLD, with numbered messages: nothing may be lost; DURATION=10s
	@GO="$(GO)" OLD="$(OLD)" DURATION="$(DURATION)" .ci/upgrade

resolver-proof: build ## decide all 2^20 states of the directed links of five nodes under every strategy of the resolver
	@$(BIN)/lab resolver-proof $(ARGS)

model: build ## try every order of events in a small cluster whose shards move; ARGS="--break=drop-at-ack" shows a rule
	@$(BIN)/lab model $(ARGS)

forming-proof: ## try the agreement on who forms a cluster exhaustively, with bounds beyond those of make test; STATES=1000000
	@$(GO) test -count=1 -timeout 60m -run TestFormingProof -v ./membership -forming-states=$(STATES) $(ARGS)

.PHONY: starts
starts: build ## simulate STARTS=100000 starts of nodes that know nobody, while discovery lies: one cluster each time; FIRST=1
	@$(BIN)/lab starts --starts=$(STARTS) --first=$(or $(FIRST),1) $(ARGS)

.PHONY: bootstrap-test
bootstrap-test: build ## real nodes that know nobody find each other by a DNS server that lies at times; ARGS="--cases=form3,changed"
	@$(BIN)/lab bootstrap-test $(ARGS)

kill-test: build ## kill one of ten real node processes and measure when all others hold it unreachable
	@$(BIN)/lab kill-test $(ARGS)

chaos: build ## real node processes under faults for MINUTES=5, drawn by SEED (none: another each time); ARGS=--net=proxy
	@$(BIN)/lab chaos --minutes=$(MINUTES) $(if $(SEED),--seed=$(SEED)) $(ARGS)

failover: build ## kill an owner, the coordinator, both; stop an owner: where each second goes; ARGS="--rounds=1 --cases=owner"
	@$(BIN)/lab failover $(ARGS)

.PHONY: stalls
stalls: build ## real processes stand still for moments under load: who ends for it; ARGS="--patience=calm --longest=1s"
	@$(BIN)/lab stalls $(ARGS)

.PHONY: partition-test
partition-test: build ## cut five real processes in two under traffic: who stops and starts when, what the verbs say; ARGS=--rounds=1
	@$(BIN)/lab partition-test $(ARGS)

scale-shards: build ## types of very many shards on real processes: homes, balance, memory; ARGS="--parts=home,proxy"
	@$(BIN)/lab scale-shards $(ARGS)

scale-out: build ## nodes join 3 real processes under 20,000 messages a second: even in 10 s, nothing lost; ARGS="--nodes=4 --fresh=0"
	@$(BIN)/lab scale-out $(ARGS)

rolling: build ## restart NODES=5 real processes in turn, ROUNDS=20 times, under 20,000 tells and asks a second: nothing lost
	@$(BIN)/lab rolling --nodes=$(NODES) --rounds=$(ROUNDS) $(ARGS)

partitions: build ## instances of partitions on NODES=5 real processes: moves, a join, a leave, a kill, a cut under traffic; ARGS="--moves=100"
	@$(BIN)/lab partitions --nodes=$(NODES) $(ARGS)

planted: ## plant the listed bugs one by one and demand that a test or the storm catches each
	@$(GO) run ./internal/lab/planted $(ARGS)
	@KITH_LONG=1 $(GO) test -count=1 -timeout $(LIMIT) -run '^TestLongPlantedMistakes$$' ./internal/lab/durables

fuzz: ## run every fuzz target for FUZZTIME=10s, or 5000000x; PKG=./wire picks packages, TARGET=Hello targets
	@GO="$(GO)" TARGET="$(TARGET)" PARALLEL="$(PARALLEL)" .ci/fuzz $(FUZZTIME) $(PKG)

bench: ## run the Go benchmarks of the rooms; PKG=./wire and BENCH=Envelope pick some
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

bench-e2e: build ## measure two real processes against raw TCP and bulk loopback of the same run
	@$(BIN)/loadgen bench $(ARGS)

idle-entities: N = 1000000
idle-entities: build ## hold N=1000000 idle entities in one node process and report its memory; ARGS=--exec=worker
	@$(BIN)/loadgen idle --entities=$(N) $(ARGS)

doors: build ## a crowd at the ports with HTTP of a node: probes, newcomers and asks beside it; ARGS="--tls --duration=30s"
	@$(BIN)/loadgen doors $(ARGS)

pressure: build ## measure what one slow entity among 1,000 behind TellWait costs the others; ARGS="--slow=50ms --rounds=5"
	@$(BIN)/loadgen pressure $(ARGS)

.PHONY: bench-gate
bench-gate: ## hold this tree against an older commit, row by row, in turn; BASE=commit, ARGS="--only=tell-local --pairs=5"
	@mkdir -p $(BIN)
	@$(GO) build -o $(BIN)/gate ./bench/gate
	@$(BIN)/gate $(if $(BASE),--base=$(BASE)) $(ARGS)

bench-peers: ## measure other messaging systems beside kith in one run; ARGS="--rounds=3 --only=nats,grpc"
	@mkdir -p $(BIN)/peers
	@cd bench/peers && $(GO) build -o ../../$(BIN)/peers/ .
	@GO="$(GO)" $(BIN)/peers/peers --dir=bench/peers --out=$(BIN)/peers $(ARGS)

test-peers: ## vet and test the peers' benchmark, a module of its own; needs its modules, from the network or the cache
	@cd bench/peers && $(GO) vet ./... && $(GO) test ./...

test-protobuf: ## vet and test the protobuf codec, a module of its own; needs its modules, from the network or the cache
	@cd codec/protobuf && $(GO) vet ./... && $(GO) test ./...

test-otel: ## vet and test the module for OpenTelemetry, a module of its own; needs its modules, from the network or the cache
	@cd otel && $(GO) vet ./... && $(GO) test ./...

.PHONY: durable
durable: MINUTES = 3
durable: ENGINE = sqlite
durable: ## durable entities on five real processes under faults for MINUTES=3, drawn by SEED, over ENGINE=sqlite, postgres, etcd, quorum
	@mkdir -p $(BIN)
	@cd test/durable && $(GO) build -o ../../$(BIN)/durable .
	@$(BIN)/durable --engine=$(ENGINE) --minutes=$(MINUTES) $(if $(SEED),--seed=$(SEED)) $(ARGS)

.PHONY: data test-data
data: MINUTES = 3
data: ## stores of package quorum on five real processes with disks, under faults for MINUTES=3, drawn by SEED: nothing lost
	@mkdir -p $(BIN)
	@cd test/data && $(GO) build -o ../../$(BIN)/data .
	@$(BIN)/data --minutes=$(MINUTES) $(if $(SEED),--seed=$(SEED)) $(ARGS)

test-data: ## vet and test the module of make data, with a short run of it; needs its modules, from the network or the cache
	@cd test/data && $(GO) vet ./... && $(GO) test -count=1 -timeout $(LIMIT) ./...

.PHONY: clients
clients: ## what HTTP clients see while real processes are restarted, killed, stopped and cut off; needs PostgreSQL
	@mkdir -p $(BIN)
	@cd test/durable && $(GO) build -o ../../$(BIN)/clients ./clients
	@$(BIN)/clients $(ARGS)

.PHONY: test-durable
test-durable: ## vet and test the module of make durable, with a short run of it; needs its modules, from the network or the cache
	@cd test/durable && $(GO) vet ./... && $(GO) test -count=1 -timeout $(LIMIT) ./...

.PHONY: test-quorum
test-quorum: ## vet and test the engine of package quorum on disk, a module of its own
	@cd quorum/pebble && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: test-stores
test-stores: ## vet and test the stores of durable entities, leases, and sqlfence, against real engines; installs PostgreSQL, etcd and MariaDB if it may
	@GO="$(GO)" .ci/test-stores

.PHONY: kube-apiserver
kube-apiserver: ## build bin/kube-apiserver from the Go module proxy, VERSION=v1.36.1: ten minutes of a core
	@GO="$(GO)" .ci/kube-apiserver

.PHONY: etcd-clock
etcd-clock: ## build bin/etcd-clock, an etcd with a clock that a test of lease/etcd sets
	@GO="$(GO)" .ci/etcd-clock

.PHONY: test-kubernetes
test-kubernetes: ## leases, pods and deploy/kubernetes against a real API server: bin/kube-apiserver, or that of the PATH; needs etcd
	@KITH_KUBE_APISERVER="$${KITH_KUBE_APISERVER:-$(wildcard $(CURDIR)/bin/kube-apiserver)}" $(GO) test -count=1 -v ./internal/lab/kubeserver

alerts: build ## check the alert rules by promtool, and by a Prometheus server that scrapes real nodes; needs both installed
	@.ci/alerts

deploy-check: ## check deploy/: manifests and chart against the published schemas, unit, image, by what the machine has
	@GO="$(GO)" .ci/deploy

page-test: ## the dashboard in a headless browser beside real processes; needs chromium; KITH_PAGE_PICTURES=dir keeps screenshots
	@cd test/browser && $(GO) vet ./... && $(GO) test -count=1 -timeout 10m ./...

site: ## build the site of the documentation in out/site; needs python3, and PyPI the first time
	@.ci/site/build

.PHONY: charts
charts: ## draw the charts of PERF.md anew from docs/perf; needs python3, and PyPI the first time
	@.ci/charts/build

check: ## formatting, vet and the code rules, in seconds
	@unformatted="$$("$$($(GO) env GOROOT)/bin/gofmt" -l .)"; if [ -n "$$unformatted" ]; then echo "not gofmt clean:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) test -count=1 ./internal/lab/rules

build: ## build bin/kith, bin/node, bin/lab and bin/loadgen
	@mkdir -p $(BIN)
	@$(GO) build -o $(BIN)/ ./cmd/kith ./cmd/node ./cmd/lab ./cmd/loadgen

.PHONY: release
release: ## build the release VERSION=v0.1.0 into dist/, or say what stands in its way; ARGS=--check, ARGS=--tag
	@GO="$(GO)" .ci/release $(ARGS) $(VERSION)

clean: ## remove what the targets made
	rm -rf $(BIN) out dist
