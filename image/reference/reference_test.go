package reference

import (
	"strings"
	"testing"

	library "go.podman.io/image/v5/docker/reference"
)

// FuzzParse: the parser accepts the names that the registry library accepts, with the same parts and the
// same errors.
func FuzzParse(f *testing.F) {
	hex := strings.Repeat("0123456789abcdef", 4)
	for _, s := range []string{
		"", "a", "a:b", "a/b", "a.b/c", "a:5/b:c", "localhost/x", "localhost:1/x", "index.docker.io/x", "docker.io/library/x", "docker.io/a/b/c",
		"A", "a/B", "A.b/c", "a.b/C:d", "a_b.c/d", "A_b.c/d", "-a.b/c", "a-.b/c", "a..b/c", "a.b:/c", "a.b:x/c", ".", "/", "a/", "/a", "a//b",
		"a_b", "a__b", "a___b", "a-b", "a---b", "a.b", "a..b", "a-_b", "_a", "a_", "a:", "a:.b", "a:-b", "a:_b", "a:b:c", "a:B", "a:" + strings.Repeat("x", 129), "a:" + strings.Repeat("x", 128),
		hex, hex[1:], "a@sha256:" + hex, "a:b@sha256:" + hex, "a@sha256:" + hex[1:], "a@sha256:" + strings.ToUpper(hex), "a@SHA256:" + hex, "a@md5:" + hex[:32], "a@sha512:" + hex,
		"a@b+c.d:" + hex, "a@b++c:" + hex, "a@+b:" + hex, "a@b+:" + hex, "a@:" + hex, "a@1b:" + hex, "a@" + hex, "a@b@c", "a@sha256", "[::1]:5/a", "ä", "a:ä", "Ä.b/c", "K.b/c",
		strings.Repeat("x", 255), strings.Repeat("x/", 130) + "x", "a b", "a\n", "a:b\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s)
		want, werr := library.ParseNormalizedNamed(s)
		if err != nil || werr != nil {
			if err == nil || werr == nil || err.Error() != werr.Error() {
				t.Fatalf("%q: %v, want %v", s, err, werr)
			}
			return
		}
		if got.String() != want.String() || got.Familiar() != library.FamiliarString(want) || got.Domain != library.Domain(want) || got.Path != library.Path(want) || got.Repository() != want.Name() {
			t.Fatalf("%q: %+v %s, want %s", s, got, got.Familiar(), want)
		}
		if tagged, ok := want.(library.Tagged); ok != (got.Tag != "") || ok && tagged.Tag() != got.Tag {
			t.Fatalf("%q: tag %q", s, got.Tag)
		}
		if digested, ok := want.(library.Digested); ok != (got.Digest != "") || ok && digested.Digest() != got.Digest {
			t.Fatalf("%q: digest %q", s, got.Digest)
		}
	})
}
