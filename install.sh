#!/bin/sh
# install.sh: install podrun for this user, or for all users if root runs it.
#
#   sh install.sh [--from URL|DIR] [--key FILE] [--prefix DIR]
#
# --from    where the files of a release are: the address of a mirror, or a directory (a USB stick);
#           default: the directory of install.sh, if it has SHA256SUMS and only you and root can write
#           there, otherwise the newest release
# --key     minisign's public key of the release: its signature must be valid, too
# --prefix  where bin and share are; default: ~/.local, for root /usr/local
set -eu
umask 022

from='' key='' prefix=$HOME/.local
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; fi
die() { echo "install.sh: $*; nothing was installed" >&2; exit 1; }
while [ $# -gt 0 ]; do
	case $1 in --from | --key | --prefix) [ $# -gt 1 ] || die "$1 requires a value" ;; esac
	case $1 in
	--from) from=$2 ;;
	--key) key=$2 ;;
	--prefix) prefix=$2 ;;
	*) die "unknown argument $1: the arguments are --from URL|DIR, --key FILE and --prefix DIR" ;;
	esac
	shift 2
done
is_ours() { # PATH [FIND'S TEST]: it is the caller's or root's, and others may not write to it, or the test is true
	[ -n "$(find "$1" -prune \( -user 0 -o -user "$(id -u)" \) \( ! -perm -020 ! -perm -002 ${2:+-o $2} \) 2>/dev/null)" ]
}
beside() { # whether only the caller and root could have put SHA256SUMS into the directory $dir
	[ ! -h "$dir/SHA256SUMS" ] && is_ours "$dir/SHA256SUMS" && is_ours "$dir" || return 1
	up=$dir
	while [ "$up" != / ]; do
		up=$(dirname "$up")
		is_ours "$up" '-perm -1000' || return 1 # in a directory like /tmp nobody can replace the files of others
	done
}
if [ -z "$from" ]; then
	from=https://github.com/podrun/podrun/releases/latest/download
	case $0 in
	*install.sh)
		dir=$(CDPATH='' cd -P -- "$(dirname -- "$0")" && pwd -P) || dir=.
		if [ -e "$dir/SHA256SUMS" ]; then
			if beside; then from=$dir; else echo "install.sh: the release in $dir is not used, because other users can write there: --from $dir installs it" >&2; fi
		fi
		;;
	esac
fi
echo "installing podrun from $from"
case $(uname -s)/$(uname -m) in
Linux/x86_64) arch=amd64 ;;
Linux/aarch64 | Linux/armv8*) if [ "$(getconf LONG_BIT 2>/dev/null)" = 32 ]; then arch=armv7; else arch=arm64; fi ;;
Linux/armv7*) arch=armv7 ;;
Linux/riscv64) arch=riscv64 ;;
*) die "there is no podrun for $(uname -s) on $(uname -m)" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work" "$prefix/bin/.podrun.new"' EXIT
get() { # NAME: a file of the release
	case $from in
	http://* | https://*)
		if command -v curl >/dev/null; then
			curl -fsSL --retry 3 -o "$work/$1" "$from/$1"
		else
			wget -q -O "$work/$1" "$from/$1"
		fi
		;;
	*) cp "$from/$1" "$work/$1" ;;
	esac || die "cannot get $1 from $from"
}
get SHA256SUMS
if [ -n "$key" ]; then
	command -v minisign >/dev/null || die "--key requires minisign: install it"
	get SHA256SUMS.minisig
	minisign -Vm "$work/SHA256SUMS" -p "$key" >&2 || die "the signature of $from/SHA256SUMS is not one of $key"
fi
file=$(sed -n "s/^[0-9a-f]*  \(podrun-[^/]*-linux-$arch\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS" | head -n 1)
[ -n "$file" ] || die "the release in $from has no podrun for $arch"
get "$file"
(cd "$work" && grep "  $file\$" SHA256SUMS | sha256sum -c >/dev/null 2>&1) || die "the checksum of $file is wrong: it is damaged or was changed"

tar -xzf "$work/$file" -C "$work" || die "cannot unpack $file"
tree=$work/${file%.tar.gz}
mkdir -p "$prefix/bin" "$prefix/share" && cp "$tree/bin/podrun" "$prefix/bin/.podrun.new" || die "cannot write to $prefix"
version=$("$prefix/bin/.podrun.new" version) || die "podrun does not run on this machine" # run there: /tmp may be mounted noexec
mv -f "$prefix/bin/.podrun.new" "$prefix/bin/podrun" # by a rename: podrun may run
cp -R "$tree/share/." "$prefix/share"
echo "installed $version in $prefix/bin/podrun, with its manual pages and completions in $prefix/share"
[ -n "$key" ] || echo "the checksum was verified, no signature: --key FILE verifies it"
case :$PATH: in
*":$prefix/bin:"*) podrun=podrun ;;
*) podrun=$prefix/bin/podrun && echo "$prefix/bin is not in your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "next: $podrun doctor    # what this machine still needs, and the commands for it"
