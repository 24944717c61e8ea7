package cluster

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// defaultClient is the kubectl of the control plane's version.
const defaultClient = "kubectl"

// kubectl runs kubectl as the cluster's administrator, or as --kubeconfig specifies, and returns its
// standard output. It fails t if kubectl fails.
func (c *controlPlane) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, c.kubectlCommand(args...))
}

// apply creates or changes the objects of a manifest.
func (c *controlPlane) apply(t *testing.T, manifest string, args ...string) {
	t.Helper()
	cmd := c.kubectlCommand(append([]string{"apply", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(manifest)
	run(t, cmd)
}

// kubectlCommand returns a call of kubectl, which may fail.
func (c *controlPlane) kubectlCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.programs, c.client), args...)
	cmd.Dir, cmd.Env = c.dir, c.env()
	return cmd
}

// run runs cmd, which must succeed, and returns its standard output.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errors strings.Builder
	cmd.Stderr = &errors
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, output, &errors)
	}
	return string(output)
}
