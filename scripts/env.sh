# Sourced by every script: where things are, which Go, and how the binaries are built.
# shellcheck shell=bash
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export LC_ALL=C.UTF-8
umask 022 # the ordinary user reads these files too

die() { echo "${0##*/}: $*" >&2; exit 1; }
info() { echo "== $*" >&2; }

# Build tags of the CLI and the supervisor program. The containers_image and graphdriver tags leave
# out C libraries, the others code that podrun never calls.
tags=seccomp,netgo,osusergo
tags+=,containers_image_openpgp,containers_image_storage_stub,containers_image_docker_daemon_stub
tags+=,exclude_graphdriver_btrfs,grpcnotrace,urfave_cli_no_docs,runc_nocriu,kustomize_disable_go_plugin_support

# The architectures of a release, as scripts/build spells them.
# shellcheck disable=SC2034
architectures=(amd64 arm64 armv7 riscv64)

# arch prints this machine's architecture as scripts/build spells it.
arch() {
	case $(uname -m) in
	x86_64) echo amd64 ;;
	aarch64) if [ "$(getconf LONG_BIT)" = 32 ]; then echo armv7; else echo arm64; fi ;;
	armv7* | armv8*) echo armv7 ;;
	riscv64) echo riscv64 ;;
	*) die "podrun is built for amd64, arm64, armv7 and riscv64, not for $(uname -m)" ;;
	esac
}

# debian_mirror prints the first address in the package sources of this machine, or nothing.
debian_mirror() {
	cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
		awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) { print $i; exit } }' || true
}

# at_least A B: version A is B or later.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]; }

go_version() { GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null | sed 's/^go//; s/[ -].*//'; }

# use_go puts a Go that is new enough for go.mod first on PATH. If only an older one exists
# (Debian's), it fetches the required toolchain through the module proxy.
use_go() {
	local want have go any='' module dir output
	want=$(awk '$1 == "go" { print $2 }' "$top/go.mod")
	for go in /usr/local/go/bin/go "$(command -v go || true)" /usr/lib/go-*/bin/go; do
		[ -x "$go" ] || continue
		have=$(go_version "$go")
		[ -n "$have" ] || continue
		any=$go
		if at_least "$have" "$want"; then
			PATH=$(dirname "$go"):$PATH
			export PATH GOTOOLCHAIN=local
			return
		fi
	done
	[ -n "$any" ] || die "there is no Go here: run scripts/deps, or install Go $want or later in /usr/local/go"
	module=golang.org/toolchain@v0.0.1-go$want.linux-$("$any" env GOHOSTARCH)
	dir=$("$any" env GOMODCACHE)/$module
	if [ ! -x "$dir/bin/go" ]; then
		info "Go $have is older than $want: fetching Go $want through the module proxy"
		# Downloaded as a module, which Go before 1.21 supports too; from outside the
		# checkout, whose go.mod an old Go cannot read.
		output=$(cd / && GOTOOLCHAIN=local GOFLAGS=-mod=mod "$any" mod download -json "$module" 2>&1) ||
			die "Go $want could not be fetched; install it in /usr/local/go, or fix this: $output"
		find "$dir/pkg/tool" -type f -exec chmod +x {} +
		chmod +x "$dir"/bin/*
	fi
	PATH=$dir/bin:$PATH
	export PATH GOROOT=$dir GOTOOLCHAIN=local
}

# go_env is use_go and sets the build tags for later go commands.
go_env() {
	use_go
	# -trimpath everywhere, so that tests and binaries share one build cache.
	export GOFLAGS="-trimpath -tags=$tags" CGO_ENABLED=1
	# A checkout of another user has no version to stamp.
	git -C "$top" rev-parse HEAD >/dev/null 2>&1 || GOFLAGS+=' -buildvcs=false'
}

# go_env_for ARCH is go_env for amd64, arm64, armv7 or riscv64. For a foreign architecture it sets the C
# compiler and the libseccomp for it.
go_env_for() {
	local triple='' root
	case $1 in
	amd64) export GOARCH=amd64 ;;
	arm64) export GOARCH=arm64 && triple=aarch64-linux-gnu ;;
	armv7) export GOARCH=arm GOARM=7 && triple=arm-linux-gnueabihf ;;
	riscv64) export GOARCH=riscv64 && triple=riscv64-linux-gnu ;;
	*) die "ARCH is amd64, arm64, armv7 or riscv64, not $1" ;;
	esac
	go_env
	export CC=gcc GOOS=linux
	[ "$1" != "$(arch)" ] || return 0
	[ -n "$triple" ] || die "$1 is built on $1"
	CC=$triple-gcc
	root=$("$top/scripts/sysroot" "$1")
	export PKG_CONFIG_LIBDIR=$root/usr/lib/$triple/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
	# Go's build cache keys include these flags, but not pkg-config's output: without them it
	# would link with the sysroot of another checkout, which may be gone.
	export CGO_LDFLAGS="-O2 -g -L$root/usr/lib/$triple"
}

# with_tun USER WORDS: run words with /dev/net/tun open for the user. If only root may open it,
# root makes another one, private to the command.
with_tun() {
	local user=$1 tun code=0
	shift
	if [ "$(id -u)" != 0 ] || setpriv --reuid="$user" --clear-groups test -w /dev/net/tun; then
		"$@"
		return
	fi
	tun=$(mktemp -u /tmp/podrun-tun.XXXXXX)
	mknod -m 666 "$tun" c 10 200
	unshare --mount --propagation private sh -c 'mount --bind "$0" /dev/net/tun && exec "$@"' "$tun" "$@" || code=$?
	rm "$tun" # not earlier: a privileged container could not bind what has no name
	return $code
}
