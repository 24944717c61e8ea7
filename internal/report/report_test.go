package report

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain, café, 日本":            "plain, café, 日本",
		"a\nb\tc\rd":                 `a\nb\tc\rd`,
		"\x1b]52;c;aGk=\x07":         `\u001b]52;c;aGk=\u0007`,
		"c1 \u009b2J":                `c1 \u009b2J`,
		"bidi \u202e abc \u2066":     `bidi \u202e abc \u2066`,
		"bytes \xff\x9b":             `bytes \xff\x9b`,
		"a real replacement: \ufffd": "a real replacement: \ufffd",
		"\xffthen\u200f":             `\xffthen\u200f`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	hinted := New(Usage, "type that", "cannot read x: %w", errors.New("no\x1b[2J such"))
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"plain":  {errors.New("it failed"), "podrun: it failed\n"},
		"hinted": {hinted, "podrun: cannot read x: no\\u001b[2J such\nhint: type that\n"},
		"wrapped keeps the hint": {
			fmt.Errorf("up: %w", hinted),
			"podrun: up: cannot read x: no\\u001b[2J such\nhint: type that\n",
		},
		"joined: each once, a shared hint once": {
			errors.Join(hinted, errors.Join(errors.New("two"), New(Failure, "type that", "three"))),
			"podrun: cannot read x: no\\u001b[2J such\npodrun: two\npodrun: three\nhint: type that\n",
		},
		"a full disk":         {fmt.Errorf("save x: %w", syscall.ENOSPC), "podrun: save x: no space left on device\nhint: free some disk space: podrun image rm and podrun down free some\n"},
		"lines":               {errors.New("first\nsecond\n"), "podrun: first\n  second\n"},
		"two in one sentence": {fmt.Errorf("%w and %w", errors.New("a"), errors.New("b")), "podrun: a and b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			Print(&b, tc.err)
			if b.String() != tc.want {
				t.Errorf("got:\n%swant:\n%s", b.String(), tc.want)
			}
		})
	}
}

func TestClassOf(t *testing.T) {
	usage := New(Usage, "", "wrong")
	for name, tc := range map[string]struct {
		err  error
		want Class
	}{
		"plain":            {errors.New("x"), Failure},
		"wrapped":          {fmt.Errorf("x: %w", usage), Usage},
		"joined":           {errors.Join(errors.New("x"), usage), Usage},
		"outermost counts": {New(Internal, "", "y: %w", usage), Internal},
	} {
		if got := ClassOf(tc.err); got != tc.want {
			t.Errorf("%s: class %d, want %d", name, got, tc.want)
		}
	}
}

func TestLastError(t *testing.T) {
	var last LastError
	var out strings.Builder
	for _, err := range []error{nil, errors.New("a"), errors.New("a"), errors.New("b"), nil, errors.New("b")} {
		last.Print(&out, err)
	}
	if want := "podrun: a\npodrun: b\npodrun: b\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
