package update

import (
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/store"
)

// TestImagesBefore: a rollback changes the images that the last update has changed, of this pod only; a pod that went back is
// not rolled back again.
func TestImagesBefore(t *testing.T) {
	record := func(result store.SetResult) *store.Set {
		return &store.Set{
			Current: &store.SetVersion{Pins: map[string]string{"web:1": "sha256:new", "log:1": "sha256:same", "db:1": "sha256:newer"}},
			Former:  &store.SetVersion{Pins: map[string]string{"web:1": "sha256:old", "log:1": "sha256:same", "db:1": "sha256:older"}, Digests: map[string]string{"web:1": "sha256:d"}},
			History: []store.SetChange{{Result: result}},
		}
	}
	running := map[string]string{"web:1": "sha256:new", "log:1": "sha256:same"}
	want := []imageChange{{ref: "web:1", from: "sha256:new", to: "sha256:old", digest: "sha256:d"}}
	if got, err := imagesBefore("web", record(store.SetApplied), running); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, r := range map[string]*store.Set{
		"it is already rolled back":      record(store.SetRolledBack),
		"no earlier images are recorded": {},
	} {
		if _, err := imagesBefore("web", r, running); err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	if _, err := imagesBefore("web", record(store.SetFailed), running); err == nil {
		t.Error("after an update that has failed: no error")
	}
}
