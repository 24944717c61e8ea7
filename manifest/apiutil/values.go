package apiutil

// Truncate cuts a text after n bytes, for messages.
func Truncate(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// IsTrue returns a flag that defaults to false.
func IsTrue(flag *bool) bool { return flag != nil && *flag }

// StringOrEmpty returns the text, or "" for nil.
func StringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
