package runner

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var logLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)$`)

// parse takes a log apart and fails on anything that is not CRI format.
func parse(t *testing.T, path string) (records [][3]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		m := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not a CRI log line: %q", line)
		}
		records = append(records, [3]string{m[1], m[2], m[3]})
	}
	return records
}
