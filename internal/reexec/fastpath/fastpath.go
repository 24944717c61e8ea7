//go:build embedprograms

package fastpath

import "C"
