package apiutil

// Truncate cuts a text after n bytes, for messages.
func Truncate(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
