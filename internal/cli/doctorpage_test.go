package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/hostdeps"
	"github.com/podrun/podrun/internal/host"
)

// TestDoctorDocumentation checks that the page of doctor -o json lists all probes in their order.
func TestDoctorDocumentation(t *testing.T) {
	text, err := os.ReadFile(referenceDir + "doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Checks")
	dir := t.TempDir()
	for _, f := range (hostdeps.Deps{}).DiagnoseHost(t.Context(), host.Setup{Data: dir, Runtime: dir}) {
		_, rest, ok := strings.Cut(table, "`"+f.Name+"`")
		if !ok {
			t.Errorf("docs/reference/doctor.md does not name the probe %q, or in another order", f.Name)
			continue
		}
		table = rest
	}
	if extra := strings.Count(table, "\n| `"); extra > 0 {
		t.Errorf("docs/reference/doctor.md names %d probes more than there are: %s", extra, table)
	}
}
