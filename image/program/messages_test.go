package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// TestErrors: an error keeps its text, hint, class, reason and sentinels on its way through a message.
func TestErrors(t *testing.T) {
	plain := errors.New("no space left")
	for _, want := range []error{
		nil,
		plain,
		fmt.Errorf("save x: %w", api.ErrNotFound),
		fmt.Errorf("pull x: %w", context.Canceled),
		report.New(report.Usage, "write it in lower case", "the name %q is invalid", "A"),
		report.New(report.Failure, "podrun login", "pull x: %w", &api.Error{Reason: api.ErrImagePull, Image: "x", Err: plain, Transient: true}),
		errors.Join(plain, report.New(report.Failure, "free some", "load y: %w", api.ErrRegistryNeeded)),
	} {
		text, err := json.Marshal(EncodeError(want))
		if err != nil {
			t.Fatal(err)
		}
		var message *Error
		if err := json.Unmarshal(text, &message); err != nil {
			t.Fatal(err)
		}
		got := message.Decode()
		if want == nil {
			if got != nil {
				t.Errorf("no error became %v", got)
			}
			continue
		}
		if got == nil || got.Error() != want.Error() || report.Hint(got) != report.Hint(want) || report.ClassOf(got) != report.ClassOf(want) {
			t.Errorf("%v, hint %q, class %v; want %v, %q, %v", got, report.Hint(got), report.ClassOf(got), want, report.Hint(want), report.ClassOf(want))
			continue
		}
		if api.Reason(got) != api.Reason(want) || api.IsTransient(got) != api.IsTransient(want) || len(report.Parts(got)) != len(report.Parts(want)) {
			t.Errorf("%v: reason %q, transient %t, %d parts", got, api.Reason(got), api.IsTransient(got), len(report.Parts(got)))
		}
		for _, sentinel := range sentinels {
			if errors.Is(got, sentinel) != errors.Is(want, sentinel) {
				t.Errorf("%v is %v: %t", got, sentinel, errors.Is(got, sentinel))
			}
		}
	}
}

// TestUnknownSentinel: a newer program may know more sentinels.
func TestUnknownSentinel(t *testing.T) {
	err := (&Error{Text: "x", Is: []int{len(sentinels), 0}}).Decode()
	if !errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

// TestClientWithoutProgram: a request fails if the program cannot be found or ends without an answer.
func TestClientWithoutProgram(t *testing.T) {
	for want, find := range map[string]func() (string, func(), error){
		"start the image program: it is gone":      func() (string, func(), error) { return "", nil, errors.New("it is gone") },
		"the image program ended: ":                func() (string, func(), error) { return "/bin/true", func() {}, nil },
		"the image program ended: exit status 1":   func() (string, func(), error) { return "/bin/false", func() {}, nil },
		"start the image program: fork/exec /none": func() (string, func(), error) { return "/none", func() {}, nil },
	} {
		c := &Client{Find: find}
		_, err := c.Do(context.Background(), Request{Op: Registries}, nil, nil)
		if err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%v, want %s", err, want)
		}
		if c.process != nil {
			t.Errorf("%s: the process is kept", want)
		}
	}
}
