package podset

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// TestDecide checks the next step for every state of a set and every result of a look.
func TestDecide(t *testing.T) {
	made := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	current := &store.SetVersion{Digest: "sha256:a", Inputs: "box", Created: made}
	settled := store.Set{State: store.SetSettled, Boot: "b1", Current: current}
	rejected := settled
	rejected.Rejected = []store.SetReject{{Digest: "sha256:b", Inputs: "box"}}
	with := func(state store.SetState) store.Set {
		s := rejected
		s.State = state
		return s
	}
	same := &Found{Digest: "sha256:a", Inputs: "box", Signed: true}
	newer := &Found{Digest: "sha256:b", Inputs: "box", Signed: true, Fetched: true, Created: made.Add(time.Second)}
	change := func(f *Found, do func(*Found)) *Found {
		next := *f
		do(&next)
		return &next
	}
	older := change(newer, func(f *Found) { f.Created = made.Add(-time.Second) })
	for name, tt := range map[string]struct {
		set   store.Set
		boot  string
		found *Found
		rules Rules
		want  Step
	}{
		"a new set":                          {store.Set{State: store.SetSettled}, "b1", nil, Rules{}, StepLook},
		"a new set, seen":                    {store.Set{State: store.SetSettled}, "b1", newer, Rules{}, StepTry},
		"not seen":                           {settled, "b1", nil, Rules{}, StepLook},
		"unchanged":                          {settled, "b1", same, Rules{}, StepKeep},
		"unchanged, by hand":                 {settled, "b1", same, Rules{Again: true}, StepTry},
		"other variables":                    {settled, "b1", change(same, func(f *Found) { f.Inputs = "other" }), Rules{}, StepTry},
		"newer":                              {settled, "b1", newer, Rules{}, StepTry},
		"rejected":                           {rejected, "b1", newer, Rules{}, StepRejected},
		"rejected, retry":                    {rejected, "b1", newer, Rules{Retry: true}, StepTry},
		"rejected with other variables":      {rejected, "b1", change(newer, func(f *Found) { f.Inputs = "other" }), Rules{}, StepTry},
		"older":                              {settled, "b1", older, Rules{}, StepOlder},
		"older, allowed":                     {settled, "b1", older, Rules{AllowOlder: true}, StepTry},
		"older, only its digest is known":    {settled, "b1", change(older, func(f *Found) { f.Fetched = false }), Rules{}, StepTry},
		"of unknown age":                     {settled, "b1", change(newer, func(f *Found) { f.Created = time.Time{} }), Rules{}, StepOlder},
		"files have no age":                  {settled, "b1", change(older, func(f *Found) { f.Signed = false }), Rules{}, StepTry},
		"after a boot":                       {settled, "b2", nil, Rules{}, StepStart},
		"after a boot, the first version":    {store.Set{State: store.SetSettled, Boot: "b1"}, "b2", nil, Rules{}, StepLook},
		"interrupted":                        {with(store.SetTrying), "b1", nil, Rules{}, StepReturn},
		"interrupted by a power cut":         {with(store.SetTrying), "b2", nil, Rules{Again: true, Retry: true}, StepReturn},
		"interrupted on the way back":        {with(store.SetReturning), "b1", newer, Rules{}, StepReturn},
		"the way back has failed":            {with(store.SetReturning), "b1", newer, Rules{Forward: true, Retry: true}, StepTry},
		"the way back has failed, not seen":  {with(store.SetReturning), "b2", nil, Rules{Forward: true}, StepLook},
		"the way back to this has failed":    {with(store.SetReturning), "b1", same, Rules{Forward: true}, StepKeep},
		"interrupted before a first version": {store.Set{State: store.SetTrying}, "b2", nil, Rules{}, StepReturn},
	} {
		if got := decide(&tt.set, tt.boot, tt.found, tt.rules); got != tt.want {
			t.Errorf("%s: step %d, want %d", name, got, tt.want)
		}
	}
}
