.PHONY: help build test check demo docs cross bench smoke-vm test-vm test-cluster test-all vm torture torture-vm vulncheck release test-release perf-check conformance fresh
help: ## show this
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 14
build: ## make bin/podrun: static, for this machine
test:  ## everything: check, build, unit, namespace and whole-binary tests
check: ## formatting, vet, the import rules, the scripts
smoke-vm: ## a short test on a real host, in one emulated machine: limits, OOM, a unit, a power cut
test-vm: ## the built binary on real hosts, in emulated machines: systemd, limits, arm64
test-cluster: ## the control plane of a real Kubernetes, which hosts can join
conformance: ## Kubernetes' own tests with a cluster of podrun cluster; writes docs/reference/conformance.md
vm:    ## boot a machine of test-vm, which runs until `scripts/vm down`
test-all: ## before a release: test, cross, demo, test-vm, test-cluster, conformance, a short torture, a short bench
torture: ## stress tests: races and kills of supervisors, many times
torture-vm: ## stress tests in machines, for hours: stops, crashes, power cuts of units, the long cases
demo:  ## install missing packages, build, run a pod as an ordinary user
docs:  ## make a web site of the documents in bin/site; a dead link is an error
fresh: ## try README's first command on a bare Debian, twice: as root, and as an ordinary user without a newer Go
cross: ## make bin/podrun-amd64, -arm64, -armv7 and -riscv64
release: ## make the release VERSION in bin/release: packages, checksums, bills of materials
test-release: ## make a release twice, and compare the files
bench: ## compare with podman kube play, in one run; PODMAN=/path/podman RUNTIME=/path/crun choose the peer
perf-check: ## count system calls, processes, syncs, writes and page faults of commands; more than before is an error
vulncheck: ## known vulnerabilities of linked modules; needs Go's database
build test check demo docs cross bench smoke-vm test-vm test-cluster test-all torture torture-vm vulncheck release test-release perf-check conformance fresh: ; @scripts/$@
vm: ; @scripts/vm up
