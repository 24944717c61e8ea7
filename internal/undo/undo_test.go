package undo

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStack(t *testing.T) {
	bad1, bad3 := errors.New("bad one"), errors.New("bad three")
	var ran []string
	step := func(name string, err error) func() error {
		return func() error { ran = append(ran, name); return err }
	}
	var s Stack
	s.Push("remove one", step("one", bad1))
	s.Push("remove two", step("two", nil))
	s.Push("remove three", step("three", bad3))

	err := s.Undo()
	if diff := cmp.Diff([]string{"three", "two", "one"}, ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	if !errors.Is(err, bad1) || !errors.Is(err, bad3) {
		t.Errorf("error %v, want both", err)
	}
	if text := err.Error(); !strings.Contains(text, "remove three: bad three") || strings.Index(text, "three") > strings.Index(text, "one") {
		t.Errorf("error text %q", text)
	}
	if err := s.Undo(); err != nil || len(ran) != 3 {
		t.Errorf("a second Undo ran %v, error %v", ran, err)
	}
}

func TestReleaseKeepsWhatWasDone(t *testing.T) {
	action := func(fail bool) (undone bool) {
		var s Stack
		defer func() { s.Undo() }()
		s.Push("it", func() error { undone = true; return nil })
		if fail {
			return
		}
		s.Release()
		return
	}
	if !action(true) {
		t.Error("a failed action was not undone")
	}
	if action(false) {
		t.Error("an action that succeeded was undone")
	}
}

// An undo function may push another one.
func TestUndoMayPush(t *testing.T) {
	var s Stack
	ran := false
	s.Push("outer", func() error {
		s.Push("inner", func() error { ran = true; return nil })
		return nil
	})
	if err := s.Undo(); err != nil || !ran {
		t.Errorf("inner ran: %v, error %v", ran, err)
	}
}
