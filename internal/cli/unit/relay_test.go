package unit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// TestRelayIsHandedOver checks that output before, during and after the handover of the relay is printed once
// and in order, and that its end is noticed.
func TestRelayIsHandedOver(t *testing.T) {
	out, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	first, err := newOutputPipe(into)
	if err != nil {
		t.Fatal(err)
	}
	supervisor, err := os.OpenFile(fmt.Sprint("/proc/self/fd/", first.end.Fd()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		if _, err := io.WriteString(supervisor, text); err != nil {
			t.Fatal(err)
		}
	}
	say("one\n")
	fd, err := first.handOver()
	if err != nil {
		t.Fatal(err)
	}
	say("two\n")
	second, err := reopenOutputPipe(into, fd)
	if err != nil {
		t.Fatal(err)
	}
	say("three\n")
	supervisor.Close()
	second.finish()
	into.Close()
	got, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join([]string{"one", "two", "three", ""}, "\n"); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
