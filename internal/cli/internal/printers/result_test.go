package printers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// TestStatusFor: an error has the reason and the code that an API server would send.
func TestStatusFor(t *testing.T) {
	_, invalid := manifest.Load("f", []byte("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}, {name: c, image: i}]}}"))
	for _, tt := range []struct {
		err    error
		reason metav1.StatusReason
		code   int32
	}{
		{invalid, metav1.StatusReasonInvalid, 422},
		{fmt.Errorf("x: %w", cmdutil.ErrImmutable), metav1.StatusReasonInvalid, 422},
		{&api.Error{Reason: api.ErrImagePull, Err: errors.New("x")}, "ErrImagePull", 500},
		{fmt.Errorf("x: %w", cmdutil.ErrForbidden), metav1.StatusReasonForbidden, 403},
		{fmt.Errorf("x: %w", cmdutil.ErrNotFound), metav1.StatusReasonNotFound, 404},
		{fmt.Errorf("x: %w", store.ErrLocked), metav1.StatusReasonConflict, 409},
		{report.New(report.Usage, "", "x"), metav1.StatusReasonBadRequest, 400},
		{errors.New("x"), metav1.StatusReasonInternalError, 500},
	} {
		got := statusFor(tt.err)
		if got.Reason != tt.reason || got.Code != tt.code || got.Message != tt.err.Error() || got.Status != metav1.StatusFailure {
			t.Errorf("%v: %+v", tt.err, got)
		}
	}
	var causes []string
	for _, c := range statusFor(invalid).Details.Causes {
		causes = append(causes, string(c.Type)+" "+c.Field)
	}
	if diff := cmp.Diff([]string{"FieldValueRequired spec.containers[0].image", "FieldValueDuplicate spec.containers[1].name"}, causes); diff != "" {
		t.Error(diff)
	}
}

func TestCauseFor(t *testing.T) {
	for message, want := range map[string]metav1.CauseType{
		"Required value: x": metav1.CauseTypeFieldValueRequired, "not supported yet": metav1.CauseTypeFieldValueNotSupported,
		"Unsupported value: 1": metav1.CauseTypeFieldValueNotSupported, "Not found: \"v\"": metav1.CauseTypeFieldValueNotFound,
		"Forbidden": "FieldValueForbidden", "unknown field": metav1.CauseTypeFieldValueInvalid,
	} {
		if got := causeFor(message); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
}

// TestImageRows: an image has a line for each of its names.
func TestImageRows(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	info := image.Info{ID: "sha256:0123456789abcdef", Added: now.Add(-5 * time.Minute), Size: 3 << 20}
	if diff := cmp.Diff([][]string{{"<none>", "0123456789ab", "5m ago", "3.1 MB"}}, ImageRows(info, now)); diff != "" {
		t.Error(diff)
	}
	info.Names = []string{"a:1", "b:1"}
	if rows := ImageRows(info, now); len(rows) != 2 || rows[1][0] != "b:1" || len(rows[0]) != len(ImageHeader()) {
		t.Errorf("%v", rows)
	}
	if got := ShortImageID("abc"); got != "abc" {
		t.Error(got)
	}
}
