package up_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestDiffAfterApply: what was applied differs in nothing, for every manifest of the examples and
// of the scripts.
func TestDiffAfterApply(t *testing.T) {
	files := map[string]string{}
	add := func(name string, data []byte) {
		if text := string(data); strings.HasSuffix(name, ".yaml") && strings.Contains(text, "apiVersion") {
			files[name] = text
		}
	}
	for _, pattern := range []string{"../../../../examples/*.yaml", "../../../../internal/manifest/*/testdata/*.yaml", "../../../../test/script/testdata/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			add(path, data)
			if strings.HasSuffix(path, ".txtar") {
				for _, f := range txtar.Parse(data).Files {
					add(path+"/"+f.Name, f.Data)
				}
			}
		}
	}
	applied := 0
	workload := regexp.MustCompile(`kind: "?(Deployment|ReplicaSet|ReplicationController|StatefulSet|DaemonSet|Job|CronJob)\b`)
	for name, text := range files {
		switch {
		case workload.MatchString(text):
			continue // apply starts its controller, a process that goes on after the test
		case strings.Contains(text, "podrun.dev/start-after"):
			continue // apply waits for pods that no supervisor starts here
		}
		h := clitest.NewHost(t)
		h.Script = func(*clitest.Supervisor) {}
		if got := h.Begin(text, "apply", "-").Wait(); got.Code != 0 {
			continue // it is of what apply refuses, which other tests check
		}
		applied++
		if got := h.Begin(text, "diff", "-").Wait(); got.Code != 0 || got.Out != "" {
			t.Errorf("%s: diff ends with %d:\n%s%s", name, got.Code, got.Out, got.Err)
		}
	}
	if t.Logf("%d of %d manifests were applied", applied, len(files)); applied < len(files)/2 {
		t.Errorf("only %d of %d manifests were applied", applied, len(files))
	}
}
