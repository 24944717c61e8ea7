//go:build embedback

package fastexec

import "C"
