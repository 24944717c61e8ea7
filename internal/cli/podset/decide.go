package podset

import (
	"time"

	"github.com/podrun/podrun/internal/store"
)

// Step is what is done next with a set.
type Step int

const (
	StepLook     Step = iota // look at the source
	StepReturn               // finish a change that was interrupted: go back to the current version
	StepStart                // start the current version: the machine was restarted since
	StepKeep                 // nothing: the current version is the newest
	StepRejected             // nothing: the newest version has failed before
	StepOlder                // nothing: the newest version is older than the current one
	StepTry                  // try the newest version
)

// Found is what a look at the source has found.
type Found struct {
	Digest, Inputs string // as in store.SetVersion
	Signed         bool   // it is an artifact, whose time of creation a signature covers
	Fetched        bool   // Created is known; false after a look that has asked for the digest only
	Created        time.Time
}

// Rules are what the user allows.
type Rules struct {
	Again      bool // try a version that runs already
	Retry      bool // try a version that has failed before
	AllowOlder bool // try a version that is older than the current one
	Forward    bool // the way back has failed: another version may help
}

// decide returns the next step of a set. now is nil before the source was looked at; boot is the current boot id.
func decide(s *store.Set, boot string, now *Found, r Rules) Step {
	switch {
	case !r.Forward && (s.State == store.SetTrying || s.State == store.SetReturning):
		return StepReturn
	case !r.Forward && s.Current != nil && s.Boot != boot:
		return StepStart
	case now == nil:
		return StepLook
	case !r.Again && s.Current != nil && s.Current.Digest == now.Digest && s.Current.Inputs == now.Inputs:
		return StepKeep
	case !r.Retry && s.RejectOf(now.Digest, now.Inputs) != nil:
		return StepRejected
	case now.Fetched && !r.AllowOlder && isOlder(s.Current, now):
		return StepOlder
	}
	return StepTry
}

// isOlder reports whether an artifact is older than the current version. One that does not say when it was made is older
// than any that does: otherwise an old artifact without the annotation could take the place of a newer one.
func isOlder(current *store.SetVersion, found *Found) bool {
	return current != nil && found.Signed && !current.Created.IsZero() && found.Created.Before(current.Created)
}

// maxInterrupted is how often a trial of one version may be interrupted, by a power cut or by a kill, before the version
// counts as failed: it may be the cause.
const maxInterrupted = 3
