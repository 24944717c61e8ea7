package sandbox

import "slices"

// addWarning adds a warning for the user, unless it is there already. It may be called concurrently,
// because volumes and containers are made concurrently.
func (s *Sandbox) addWarning(text string) {
	s.warningsMu.Lock()
	defer s.warningsMu.Unlock()
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// Warnings returns the warnings so far.
func (s *Sandbox) Warnings() []string {
	s.warningsMu.Lock()
	defer s.warningsMu.Unlock()
	return slices.Clone(s.warnings)
}
