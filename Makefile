# Each target brings what it needs: see scripts/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
export CGO_ENABLED ?= 0
# Every go command has these flags, so that what one compiles serves them all. The tags leave
# out gRPC's part of Google's storage, which notebox asks over HTTP, and gRPC's debug pages.
# -s strips symbols; traces of panics keep their lines.
export GOFLAGS := $(GOFLAGS) -trimpath -tags=disable_grpc_modules,grpcnotrace -ldflags=-s
# The program compiles while an image is built.
MAKEFLAGS += --jobs=2

.PHONY: help demo check test serve image images build man supervisor stores browser clients pages bench soak soak-long load fuzz lint test-go test-harness test-short test-cells test-service test-v2 test-kubernetes test-adversarial compose-up compose-down test-compose test-release update-golden clean FORCE

help: ## show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: build image ## run a real analysis through the service, once
	@scripts/demo.sh

check: lint test-harness test-short ## format, vet, lint, import rules, and the tests without containers

test: test-harness test-go ## every test there is, with real containers

serve: build image ## run the service in the foreground; ARGS="--listen …" or NOTEBOX_… pass flags on
	@exec bin/notebox serve $(ARGS)

image: ## build the sandbox image, where its content has changed
	@scripts/docker.sh
	@scripts/image.sh >/dev/null

images: ## build the images of all languages; NOTEBOX_ENVIRONMENTS_DIR=… adds your own
	@scripts/docker.sh
	@scripts/image.sh --all >/dev/null

build: bin/notebox ## build the program

bin/notebox: supervisor FORCE
	@echo "build: compiling $@, some minutes the first time" >&2
	@go build -o $@ ./cmd/notebox

man: build ## write the man pages to bin/man
	@bin/notebox man bin/man && ls bin/man/*.1

# Cells come by themselves: beside other packages their tests would be late.
test-go: supervisor images stores browser clients
	GO_PACKAGES="./tests/adversarial ./tests/e2e/... ./runner/docker $$(go list ./... | grep -v /runner/cells$$ | xargs)" scripts/go-test.sh
	GO_PACKAGES=./runner/cells scripts/go-test.sh

# Most that these packages test is in containers. A container that another test wants fails it.
test-short: supervisor stores browser clients
	@GO_PACKAGES="$$(go list ./... | grep -vE '/(tests/adversarial|tests/faults|runner/docker|runner/cells)$$' | xargs)" \
	  DOCKER_HOST=unix:///no-containers scripts/go-test.sh -short

test-cells: images ## the tests of cells alone
	go test -count 1 -timeout 30m ./runner/cells ./environments/supervisor/...

# Every test has the sandboxes that a service has if it is not told, so cells where this host gives
# them all walls.
test-service: ISOLATION ?= $(NOTEBOX_TEST_ISOLATION)
test-service: images stores browser clients ## the tests of the whole service again; ISOLATION=container has them there, ARGS="-run X"
	NOTEBOX_TEST_ISOLATION=$(ISOLATION) GO_PACKAGES="./tests/adversarial ./tests/e2e/... ./tests/faults" scripts/go-test.sh -count 1 $(ARGS)

test-v2: ## boot a machine with cgroup v2 in QEMU, and test the walls and limits of cells there
	@scripts/test-v2.sh

test-kubernetes: ## start a Kubernetes cluster on this machine, test on it, and take it down; KEEP=1 leaves it, ARGS="-run X"
	@scripts/test-kubernetes.sh $(ARGS)

test-adversarial: images ## send every bad input to the real service, and have every fault, a line a case; ARGS="-cases 'A.*|C8' -show"
	@scripts/test-adversarial.sh $(ARGS)

stores: ## install the servers that the tests of storage start
	@scripts/stores.sh

browser: ## install Chromium and Firefox, which open the pages in tests, and axe-core, which judges them
	@scripts/chromium.sh >/dev/null
	@scripts/firefox.sh >/dev/null
	@scripts/page.sh --packages >/dev/null

clients: ## install the official clients that tests use, in other languages, and the shells
	@scripts/clients.sh
	@scripts/shells.sh

supervisor: ## compile the supervisor of cells, which is a part of the program
	@go run ./scripts/supervisor

pages: ## fetch what /docs and /redoc are made of anew, and bundle the page at /; ARGS=--check compares
	@scripts/pages.sh $(ARGS)
	@scripts/page.sh $(ARGS)

test-harness:
	@scripts/python-tools.sh
	cd environments/harness && ../../.venv/bin/python -m pytest -q -p no:cacheprovider

bench: build images ## measure against docker run, about an hour on 2 idle cores; ARGS="-cases print -load 10s …"
	go run ./tests/bench $(ARGS)

soak: image ## 1,000 runs, after which the service holds what it held before
	NOTEBOX_SOAK_RUNS=1000 go test ./tests/e2e/operation -run '^TestSoak$$' -count 1 -timeout 2h -v

soak-long: image ## 100,000 runs, after which the service holds what it held after 10,000; about an hour
	NOTEBOX_SOAK_LONG=1 go test ./tests/e2e/operation -run '^TestSoak$$/^long$$' -count 1 -timeout 3h -v

load: image ## good requests beside bad ones, 2 times 2 minutes on an idle machine; ARGS="-seed …"
	@cd tests/adversarial && NOTEBOX_LOAD_SECONDS=120 go test -count 1 -run '^TestUnderLoad$$' -timeout 30m -v $(ARGS)

fuzz: ## try random inputs on every decoder; FUZZTIME=30s FUZZJOBS=8 (cores); ARGS="--report" or "FuzzDecode|harness"
	@scripts/fuzz.sh $(ARGS)

lint: ## gofmt, go vet, staticcheck, the import rule; ruff, mypy; shellcheck; compose.yaml and the unit of systemd
	@scripts/lint.sh

compose-up: ## build and start the service in a container; PROFILES="azurite s3 monitoring caddy" adds those
	@scripts/compose-build.sh
	@scripts/compose.sh up -d
	@echo "compose-up: an API key: scripts/compose.sh exec notebox notebox key -file /var/lib/notebox/api-keys NAME" >&2

compose-down: ## stop it; what it has stored stays
	@scripts/compose.sh down

test-compose: ## start compose.yaml with each profile, its servers made of packages
	@scripts/test-compose.sh

test-release: ## make a release with its bills of materials, and install its archive and its Debian package
	@scripts/test-release.sh

update-golden: images ## rewrite the golden files of the tests; look at the difference
	go test ./notebook ./runner/docker ./server -update
	go test ./tests/e2e/protocols -run TestThePagesMembers -update

clean: ## remove what was built here; images, stored files and state stay
	@[ ! -d .cluster/run ] || scripts/cluster.sh down
	rm -rf bin dist .venv .stores .clients .page .release .v2 .cluster
