package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/test/internal/howto"
)

const (
	// toolsPage is the page whose commands TestOwnClusterTools runs.
	toolsPage = "../../docs/how-to/tools-on-your-kubernetes.md"

	toolsEnv = "PODRUN_CLUSTER_TOOLS" // where scripts/test-cluster puts the programs of the page
)

// TestOwnClusterTools: Helm and an operator do in a cluster of podrun cluster what the page says.
func TestOwnClusterTools(t *testing.T) {
	d := newDeveloper(t)
	d.importImage(t, "localhost/web:1")
	copyProgram(t, filepath.Join(os.Getenv(toolsEnv), "chaospod"), d.file("chaospod"))
	greetings := []string{"hello", "goodbye", "hello"}
	for _, b := range howto.Read(t, toolsPage, map[string]string{
		"Type:": "type", "A chart is a directory. `greeter/Chart.yaml`:": "greeter/Chart.yaml", "`greeter/values.yaml`:": "greeter/values.yaml",
		"`greeter/templates/greeter.yaml`:": "greeter/templates/greeter.yaml", "`greeter/templates/test.yaml`,": "greeter/templates/test.yaml",
		"The nodes have the image at once. `operator.yaml`:": "operator.yaml", "`victim.yaml`:": "victim.yaml",
	}) {
		if b.Where != "type" {
			if err := os.MkdirAll(filepath.Dir(d.file(b.Where)), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, d.file(b.Where), []byte(b.Text()))
			continue
		}
		for _, line := range b.Lines {
			switch {
			case strings.HasPrefix(line, "helm test"): // the node may not know yet that the pods of a Service have changed
				d.waitFor(t, line+" prints "+greetings[0], func() bool {
					output, err := d.shell(line).Output()
					return err == nil && strings.HasSuffix(strings.TrimSpace(string(output)), "\n"+greetings[0])
				})
				greetings = greetings[1:]
			default:
				t.Logf("%s\n%s", line, run(t, d.shell(line)))
			}
		}
	}
	if len(greetings) > 0 {
		t.Errorf("%s has no command that prints %q", toolsPage, greetings)
	}
}

// copyProgram copies a program.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(readFile(t, from)), 0o755); err != nil {
		t.Fatal(err)
	}
}
