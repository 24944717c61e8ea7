package podutil

import "strings"

// SplitSubscriptedPath splits metadata.labels['key'].
func SplitSubscriptedPath(fieldPath string) (of, key string, ok bool) {
	rest, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return fieldPath, "", false
	}
	of, key, ok = strings.Cut(rest, "['")
	return of, key, ok && of != ""
}
