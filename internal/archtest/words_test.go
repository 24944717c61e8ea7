package archtest

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// forbiddenWords may not stand anywhere, split so that this file passes.
var forbiddenWords = []struct{ a, b, why string }{
	{"proxy.golang", ".org", registries},
	{"sum.golang", ".org", registries},
	{"deb.debian", ".org", registries},
	{"security.debian", ".org", registries},
	{"snapshot.debian", ".org", registries},
	{"archive.raspberrypi", ".org", registries},
	{"archive.raspberrypi", ".com", registries},
	{"archive.ubuntu", ".com", registries},
	{"TO", "DO", "do it, or write an issue"},
	{"FIX", "ME", "fix it, or write an issue"},
	{"/work/", "main", "a path of one machine"},
	{"/work/", "shared", "a path of one machine"},
}

const registries = "mirrors differ from site to site: the tools know theirs"

func TestForbiddenWords(t *testing.T) {
	for _, p := range allPaths(t) {
		text := read(t, p)
		if !utf8.ValidString(text) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			for _, w := range forbiddenWords {
				if strings.Contains(line, w.a+w.b) {
					t.Errorf("%s:%d: %q may not stand here: %s", p, i+1, w.a+w.b, w.why)
				}
			}
		}
	}
}
