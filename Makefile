.PHONY: help build test check demo cross bench test-vm torture
help: ## show this
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 14
build: ## make bin/podrun: static, for this machine
test:  ## everything: check, build, unit, namespace and whole-binary tests
check: ## formatting, vet, the law of the house
test-vm: ## what needs systemd and delegated cgroups, in a virtual machine
torture: ## races of sleeping supervisors, for some minutes
demo:  ## install what is missing, build, run a pod as an ordinary user
cross: ## make bin/podrun-amd64, -arm64 and -armv7
bench: ## compare with podman kube play, in one run
build test check demo cross bench test-vm torture: ; @scripts/$@
