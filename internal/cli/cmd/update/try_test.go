package update

import (
	"reflect"
	"testing"

	"github.com/podrun/podrun/internal/store"
)

// TestForRecord: the record of an update has the older image as Old, no matter in which direction the change is.
func TestForRecord(t *testing.T) {
	want := []store.UpdatedImage{{Ref: "web:1", Old: "sha256:a", New: "sha256:b", Digest: "sha256:d"}}
	if got := forRecord([]imageChange{{ref: "web:1", from: "sha256:a", to: "sha256:b", digest: "sha256:d"}}, false); !reflect.DeepEqual(got, want) {
		t.Errorf("forward: %+v", got)
	}
	if got := forRecord([]imageChange{{ref: "web:1", from: "sha256:b", to: "sha256:a", digest: "sha256:d"}}, true); !reflect.DeepEqual(got, want) {
		t.Errorf("reversed: %+v", got)
	}
}
