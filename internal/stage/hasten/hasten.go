//go:build embedback

package hasten

import "C"
