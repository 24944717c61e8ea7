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

	// pageRegistry is the registry of the page.
	pageRegistry = "192.168.1.5:5000"
)

// fluxRights stands for the rights that flux install gives to the controllers.
const fluxRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flux}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: ` + fluxNamespace + `}]
`

// TestOwnClusterTools: Helm, an operator and Flux do in a cluster of podrun cluster what the page says.
func TestOwnClusterTools(t *testing.T) {
	d := newDeveloper(t)
	d.importImage(t, "localhost/web:1")
	copyProgram(t, filepath.Join(os.Getenv(toolsEnv), "chaospod"), d.file("chaospod"))
	registry := os.Getenv(addressEnv) + testRegistryPort
	d.startRegistry(t, registry)
	greetings := []string{"hello", "goodbye", "hello"}
	for _, b := range howto.Read(t, toolsPage, map[string]string{
		"Type:": "type", "A chart is a directory. `greeter/Chart.yaml`:": "greeter/Chart.yaml", "`greeter/values.yaml`:": "greeter/values.yaml",
		"`greeter/templates/greeter.yaml`:": "greeter/templates/greeter.yaml", "`greeter/templates/test.yaml`,": "greeter/templates/test.yaml",
		"The nodes have the image at once. `operator.yaml`:": "operator.yaml", "`victim.yaml`:": "victim.yaml",
		"`site/hello.yaml`:": "site/hello.yaml", "`flux.yaml`:": "flux.yaml",
	}) {
		text := strings.ReplaceAll(b.Text(), pageRegistry, registry)
		if b.Where != "type" {
			if err := os.MkdirAll(filepath.Dir(d.file(b.Where)), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, d.file(b.Where), []byte(text))
			continue
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "flux install"):
				d.installFlux(t)
			case strings.HasPrefix(line, "helm test"): // the node may not know yet that the pods of a Service have changed
				d.waitFor(t, line+" prints "+greetings[0], func() bool {
					output, err := d.shell(line).Output()
					return err == nil && strings.HasSuffix(strings.TrimSpace(string(output)), "\n"+greetings[0])
				})
				greetings = greetings[1:]
			default:
				output := run(t, d.shell(line))
				t.Logf("%s\n%s", line, output)
				if strings.HasPrefix(line, "kubectl logs") && output != "hello\n" {
					t.Errorf("%s printed %q", line, output)
				}
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

// installFlux does what flux install does, with images of the programs: their own are on the internet.
func (d *developer) installFlux(t *testing.T) {
	t.Helper()
	flux := os.Getenv(fluxEnv)
	for _, name := range []string{"source-controller", "kustomize-controller"} {
		d.importProgram(t, filepath.Join(flux, name), "docker.io/fluxcd/"+name+":latest", "65534:65534")
	}
	d.kubectl(t, "create", "namespace", fluxNamespace)
	d.kubectl(t, "apply", "--server-side", "-f", filepath.Join(flux, "flux.yaml"))
	d.kubectl(t, "wait", "-f", filepath.Join(flux, "flux.yaml"), "--for=condition=Established", "--timeout="+timeout.String())
	d.apply(t, fluxRights)
	d.kubectl(t, "apply", "-n", fluxNamespace, "-f", filepath.Join(flux, "flux-controllers.yaml"))
}
