package tty

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseKeys(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "ctrl-p,ctrl-q": "\x10\x11", "a": "a", "ctrl-@,ctrl-[,ctrl-_,ctrl-\\,ctrl-],ctrl-^": "\x00\x1b\x1f\x1c\x1d\x1e", "ctrl-P": "\x10",
	} {
		if got, err := ParseKeys(text); err != nil || string(got) != want {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"ctrl-", "ctrl-pp", "ab", ",", "ctrl-1", "ctrl-p,", "shift-a"} {
		if got, err := ParseKeys(text); err == nil {
			t.Errorf("%q was taken for %q", text, got)
		}
	}
}

func TestDetachable(t *testing.T) {
	for _, tt := range []struct {
		keys, typed, want string
		detached          bool
	}{
		{"\x10\x11", "plain text", "plain text", false},
		{"\x10\x11", "ab\x10\x11cd", "ab", true},
		{"\x10\x11", "\x10\x10\x11", "\x10", true},
		{"\x10\x11", "a\x10b\x10", "a\x10b\x10", false},
		{"aab", "aaab", "a", true},
		{"aba", "abba", "abba", false},
		{"x", "xx", "", true},
		{"", "\x10\x11", "\x10\x11", false},
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(tt.typed), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.typed))} {
			got, err := io.ReadAll(NewDetachable(in, []byte(tt.keys)))
			if string(got) != tt.want || errors.Is(err, ErrDetached) != tt.detached {
				t.Errorf("%q %s: %q %v, want %q", tt.typed, name, got, err, tt.want)
			}
		}
	}
}
