package printers

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/store"
)

func TestSetRow(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	digest := "sha256:" + strings.Repeat("0123", 16)
	applied := store.SetChange{At: now.Add(-5 * time.Minute), Result: store.SetApplied, Digest: digest}
	failed := store.SetChange{At: now.Add(-time.Minute), Result: store.SetFailed, Digest: digest, Version: "2", Reason: "pod web\tis not ready\nhint"}
	current := &store.SetVersion{Digest: digest, Revision: "main@sha1:4f2c"}
	for _, tc := range []struct {
		set      store.Set
		changing bool
		row      string
		failure  string
	}{
		{store.Set{State: store.SetSettled, Current: current, History: []store.SetChange{applied}}, false, "shop|Ready|main@sha1:4f2c|sha256:012301230123|5m|oci://x", ""},
		{store.Set{State: store.SetSettled, Current: current, History: []store.SetChange{applied, failed}}, false, "shop|RolledBack|main@sha1:4f2c|sha256:012301230123|60s|oci://x", `2: pod web\tis not ready`},
		{store.Set{State: store.SetSettled, Current: current, History: []store.SetChange{failed, applied}}, false, "shop|Ready|main@sha1:4f2c|sha256:012301230123|5m|oci://x", `2: pod web\tis not ready`},
		{store.Set{State: store.SetSettled, History: []store.SetChange{failed}}, false, "shop|Failed|-|-|60s|oci://x", `2: pod web\tis not ready`},
		{store.Set{State: store.SetTrying, Current: &store.SetVersion{Digest: digest}}, true, "shop|Changing|sha256:012301230123|sha256:012301230123|-|oci://x", ""},
		{store.Set{State: store.SetReturning, Current: &store.SetVersion{Digest: digest, Version: "1", Revision: "r"}}, true, "shop|GoingBack|1|sha256:012301230123|-|oci://x", ""},
		{store.Set{State: store.SetTrying}, false, "shop|Interrupted|-|-|-|oci://x", ""},
	} {
		tc.set.Source = "oci://x"
		row := SetRow("shop", &tc.set, tc.changing, now)
		if got := strings.Join(row, "|"); got != tc.row || len(row) != len(SetHeader()) || SetFailure(&tc.set) != tc.failure {
			t.Errorf("%s, %q; want %s, %q", got, SetFailure(&tc.set), tc.row, tc.failure)
		}
	}
}
