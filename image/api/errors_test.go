package api

import (
	"errors"
	"fmt"
	"testing"
)

// TestReason: the kubelet's reason is found in the chain, and only a failed pull may be worth another attempt.
func TestReason(t *testing.T) {
	cause := errors.New("no answer")
	for _, tt := range []struct {
		err       error
		reason    string
		transient bool
	}{
		{nil, "", false},
		{cause, "", false},
		{&Error{Reason: ErrImagePull, Err: cause, Transient: true}, ErrImagePull, true},
		{fmt.Errorf("pod web: %w", &Error{Reason: ErrImagePull, Err: cause, Transient: true}), ErrImagePull, true},
		{&Error{Reason: ErrImagePull, Err: cause}, ErrImagePull, false},
		{&Error{Reason: SignatureValidationFailed, Err: cause, Transient: true}, SignatureValidationFailed, false},
	} {
		if reason, transient := Reason(tt.err), IsTransient(tt.err); reason != tt.reason || transient != tt.transient {
			t.Errorf("%#v: %q, transient %t", tt.err, reason, transient)
		}
	}
	if err := error(&Error{Reason: ErrImagePull, Err: cause}); !errors.Is(err, cause) || err.Error() != "no answer" {
		t.Errorf("the cause is lost: %v", err)
	}
}
