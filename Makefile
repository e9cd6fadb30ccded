# SPDX-License-Identifier: Apache-2.0
#
# One command each. "make help" lists them.

GO        = go
GOTOOL    = $(GO) tool -modfile=tools.mod
FUZZTIME  = 60s
BENCH     = .
BENCHTIME = 1s
COUNT     = 1
COVER     = cover.out
CRASHES   = 5
CHECKS    = 10000
VERSION   = devel

# Where tests that ask for thousands of journals put them: memory, if there is some.
MEMDIR    = $(shell test -w /dev/shm && echo /dev/shm || echo $${TMPDIR:-/tmp})

CRASHTESTS = Crash|Kill|Fault|Abort|Truncat|Torn|NoSpace|DiskFull

# Modules beside the main one that are checked like it.
NESTED = test/e2e test/soak test/timeline test/compare examples/virtual-kubelet contrib/podsapi
FUZZ   = .

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: fmt vet staticcheck tidy ## gofmt, go vet, staticcheck, rules of internal/archtest, go.mod tidy
	$(GO) test ./internal/archtest

.PHONY: fmt
fmt:
	@bad=$$(gofmt -l .); test -z "$$bad" || { echo "not gofmt'ed:" $$bad; exit 1; }

.PHONY: vet
vet:
	$(GO) vet ./...
	for m in $(NESTED); do CGO_ENABLED=0 $(GO) -C $$m vet ./... || exit 1; done
	$(GO) -C test/controlplane vet ./cmd/controlplane

.PHONY: staticcheck
staticcheck:
	$(GOTOOL) staticcheck ./...
	for m in $(NESTED); do (cd $$m && CGO_ENABLED=0 $(GO) tool -modfile=$(CURDIR)/tools.mod staticcheck ./...) || exit 1; done

.PHONY: tidy
tidy:
	$(GO) mod tidy -diff
	for m in $(NESTED); do $(GO) -C $$m mod tidy -diff || exit 1; done

.PHONY: build
build: ## both programs, in bin/
	$(GO) build -o bin/ ./cmd/statusstore ./tools/journal-dump

.PHONY: test
test: ## all tests of the main module
	$(GO) test ./...

.PHONY: race
race: ## the same under the race detector
	$(GO) test -race ./...

.PHONY: crash
crash: ## the tests that kill processes or fail the disk, CRASHES (5) times
	$(GO) test -count=$(CRASHES) -timeout 60m -run '$(CRASHTESTS)' ./...

.PHONY: model
model: ## CHECKS (10000) random stories each, with and without a server, against the model
	TMPDIR=$(MEMDIR) $(GO) test -count=1 -timeout 60m -v -run '^TestModel' ./manager -rapid.checks=$(CHECKS)

.PHONY: fuzz
fuzz: ## each fuzz target that matches FUZZ (.) for FUZZTIME (60s)
	@for p in $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep -E '^Fuzz.*($(FUZZ))'); do \
			echo "== $$p $$f"; \
			$(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$p || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## benchmarks, then the tables of test/compare that need no API server; BENCH=regexp BENCHTIME=1s COUNT=1
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) ./...
	cd test/compare && CGO_ENABLED=0 $(GO) run . journal --rounds $(COUNT) && CGO_ENABLED=0 $(GO) run . memory --rounds $(COUNT)

.PHONY: controlplane
controlplane: ## build kube-apiserver and etcd for e2e (minutes the first time)
	test/controlplane/controlplane.sh build

.PHONY: contrib
contrib: ## tests of contrib/kubelet, with the control plane's build flags, and of contrib/podsapi
	cd contrib/kubelet && CGO_ENABLED=0 GOWORK=off GOFLAGS= $(GO) test -count=1 -buildvcs=false -trimpath -gcflags=all=-dwarf=false ./...
	CGO_ENABLED=0 $(GO) -C contrib/podsapi test -count=1 ./...

.PHONY: virtual-kubelet
virtual-kubelet: controlplane ## the virtual-kubelet example against a real kube-apiserver
	CGO_ENABLED=0 $(GO) -C examples/virtual-kubelet test -count=1 -timeout 20m .

.PHONY: e2e
e2e: controlplane ## scenarios against a real kube-apiserver
	$(GO) -C test/e2e test -count=1 -timeout 30m -v .

.PHONY: load
load: ## 64 clients x 10,000 statuses beside 1,000 watches (2 to 15 minutes)
	STATUSSTORE_LOAD_PUTS=10000 $(GO) test -count=1 -timeout 40m -v -run '^TestLoad$$' ./internal/agent

.PHONY: soak
soak: ## millions of events, a month of outage, a full disk (journals on /dev/shm if there is one)
	$(GO) -C test/soak test -count=1 -timeout 60m -v .

.PHONY: timeline
timeline: ## journal-dump's page in a headless Chromium, where there is one
	$(GO) -C test/timeline test -count=1 -timeout 15m -v .

.PHONY: compare
compare: ## tests of test/compare, which measures beside the stock status manager and other journals
	CGO_ENABLED=0 $(GO) -C test/compare test -count=1 ./...

.PHONY: release
release: ## static programs in dist/, the same byte by byte wherever they are built; VERSION=v1.2.3
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o dist/ \
		-ldflags '-s -w -buildid= -X github.com/statusstore/statusstore/internal/cli.release=$(VERSION)' ./cmd/statusstore ./tools/journal-dump

.PHONY: deb
deb: ## build the Debian package, unpack and check it; fetches nfpm
	GOBIN=$(CURDIR)/bin $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0
	NFPM=$(CURDIR)/bin/nfpm $(GO) test -count=1 -v -run TestPackage ./internal/cli

.PHONY: systemd
systemd: release ## the unit under a real systemd, in a container; needs root and systemd-nspawn
	TMPDIR=$(MEMDIR) deploy/systemd/verify.sh

.PHONY: cover
cover: ## coverage of the main module, in COVER (cover.out)
	$(GO) test -coverpkg=./... -coverprofile=$(COVER) ./...
	$(GO) tool cover -func=$(COVER) | tail -n 1

.PHONY: docs
docs: build ## write docs/cli.md from the programs' help; fails if that changes it
	@for p in statusstore journal-dump; do \
		test $$p = statusstore && printf '# Commands\n\nWhat the programs say with --help; "make docs" writes this file.\n'; \
		printf '\n## %s\n\n```\n' $$p; bin/$$p --help; echo '```'; \
		for c in $$(bin/$$p --help | awk '/^[A-Z].*:$$/ { on = !/^(Usage|Examples|Flags):/ } on && /^  [a-z]/ && $$1 != "help" { print $$1 }'); do \
			printf '\n### %s %s\n\n```\n' $$p $$c; bin/$$p $$c --help; echo '```'; \
		done; \
	done >bin/cli.md
	@cmp -s bin/cli.md docs/cli.md || { cp bin/cli.md docs/cli.md; echo "docs/cli.md has changed: look at it and commit it"; exit 1; }

.PHONY: vuln
vuln: ## known vulnerabilities; needs the network
	$(GOTOOL) govulncheck ./...
