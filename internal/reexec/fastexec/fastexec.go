//go:build embedprograms

package fastexec

import "C"
