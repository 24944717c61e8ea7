// Package containerinit is a container's init in C, in place of libcontainer's in Go: see init.c. A blank import links
// it in. It makes plain containers only; runner/container decides which are plain.
package containerinit

// #cgo CFLAGS: -Wall -Wextra -Werror -O2 -D_FILE_OFFSET_BITS=64
import "C"

import _ "github.com/opencontainers/runc/libcontainer/nsenter" // nsexec
