package records

import (
	"strings"
	"testing"
)

func TestIDBeginning(t *testing.T) {
	for s, want := range map[string]string{
		"abcd": "abcd", "sha256:0123": "0123", strings.Repeat("f", 64): strings.Repeat("f", 64),
		"abc": "", "sha256:abc": "", "": "", "sha256:": "", "ABCD": "", "abcg": "", "abcd\n": "", "ab cd": "",
		"sha256:sha256:abcd": "", "sha512:abcd": "", strings.Repeat("f", 65): "",
	} {
		hex, ok := idPrefix(s)
		if ok != (want != "") || ok && hex != want {
			t.Errorf("%q: %q, %t", s, hex, ok)
		}
	}
}
