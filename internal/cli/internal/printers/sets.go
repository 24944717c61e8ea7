package printers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod/podrow"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// SetHeader returns the columns of follow ls.
func SetHeader() []string {
	return []string{"NAME", "STATUS", "VERSION", "DIGEST", "CHANGED", "SOURCE"}
}

// SetRow returns the line of a set under SetHeader; changing is whether a process changes it now.
func SetRow(name string, s *store.Set, changing bool, now time.Time) []string {
	version, digest, changed := "-", "-", "-"
	if s.Current != nil {
		version, digest = SetVersionName(s.Current.Version, s.Current.Revision, s.Current.Digest), ShortDigest(s.Current.Digest)
	}
	if len(s.History) > 0 {
		changed = podrow.Age(s.History[len(s.History)-1].At, now)
	}
	return []string{name, SetStatus(s, changing), version, digest, changed, report.Escape(s.Source)}
}

// SetStatus returns the state of a set in words.
func SetStatus(s *store.Set, changing bool) string {
	switch {
	case s.State == store.SetSettled && s.Current == nil:
		return "Failed"
	case s.State == store.SetSettled && s.LastResult() == store.SetFailed:
		return "RolledBack"
	case s.State == store.SetSettled:
		return "Ready"
	case !changing:
		return "Interrupted"
	case s.State == store.SetTrying:
		return "Changing"
	}
	return "GoingBack"
}

// SetFailure returns the version of the last change that has failed, and the first line of the reason; "" if there is none.
func SetFailure(s *store.Set) string {
	for _, c := range slices.Backward(s.History) {
		if c.Result == store.SetFailed {
			return SetVersionName(c.Version, c.Revision, c.Digest) + ": " + FirstLine(c.Reason)
		}
	}
	return ""
}

// SetVersionName returns a version's name for people: what its annotations say, or the beginning of its digest.
func SetVersionName(version, revision, digest string) string {
	return report.Escape(cmp.Or(version, revision, ShortDigest(digest)))
}

// ShortDigest returns the beginning of a digest, with its algorithm.
func ShortDigest(digest string) string { return fmt.Sprintf("%.19s", digest) }

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return report.Escape(first)
}
