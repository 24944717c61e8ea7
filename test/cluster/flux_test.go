package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/test/internal/howto"
	"github.com/podrun/podrun/test/internal/standin"
)

const (
	fluxEnv       = "PODRUN_CLUSTER_FLUX" // where scripts/test-cluster puts the controllers of Flux
	fluxNamespace = "flux-system"
	registry      = "127.0.0.1:5000"
)

// A fluxPage does what the page says about the workstation and the cluster. The registry, the workstation and the server of
// the cluster are the host of the control plane, and share a directory. So are the node, and a box without a cluster.
type fluxPage struct {
	*controlPlane
	workstation, box *node
	blocks           []howto.Block     // of the page, which are to be done
	names            *strings.Replacer // from the names of the page
}

// TestFlux: the pods that Flux makes of an artifact on a node of podrun are those that podrun follow makes on a box.
func TestFlux(t *testing.T) {
	f := startFluxPage(t)
	// The tag stable is version 1.1 when the page comes to the cluster.
	for f.blocks[0].Where != "cluster" {
		switch b := f.next(); b.Where {
		case "workstation":
			f.onWorkstation(t, b.Text())
		case "site/web.yaml", "site/visitor.yaml":
			writeFile(t, f.workstation.file(b.Where), []byte(f.names.Replace(b.Text())))
		}
	}
	install, secret, _ := strings.Cut(f.next().Text(), "\n")
	if install != "flux install" {
		t.Fatalf("%s: the test does not know the command %s", howto.FleetPage, install)
	}
	f.startFlux(t)
	f.onServer(t, secret)
	b := f.next()
	// Only the registry of the test has no TLS.
	writeFile(t, f.workstation.file(b.Where), []byte(f.names.Replace(strings.Replace(b.Text(), "  url:", "  insecure: true\n  url:", 1))))
	apply := f.next().Text()
	f.waitFor(t, "version 1.1", func() bool { return strings.HasSuffix(f.onServer(t, apply), "version 1.1 in the cluster\n") })
	f.follow(t)
	f.samePods(t, "version 1.1")

	f.onWorkstation(t, f.next().Text())
	look := f.next().Text()
	f.onServer(t, look)
	f.follow(t)
	f.samePods(t, "version 1.3")
	f.refusesUnsigned(t, look)
	f.samePods(t, "version 1.3")
	if len(f.blocks) > 0 {
		t.Errorf("%s: the test does not do %q", howto.FleetPage, f.blocks)
	}
}

// startFluxPage starts a control plane with a node, and a registry with the image of the page.
func startFluxPage(t *testing.T) *fluxPage {
	t.Helper()
	c := startControlPlane(t)
	c.startRegistry(t, registry)
	f := &fluxPage{controlPlane: c, blocks: howto.ReadFleet(t)}
	f.workstation, f.box = c.newNode(t, nil, "workstation"), c.newNode(t, nil, "box")
	f.names = strings.NewReplacer("registry.example.org", registry, "docker.io", registry, "/media/stick", f.workstation.file("stick"))
	for _, dir := range []string{"bin", "stick"} {
		if err := os.Mkdir(f.workstation.file(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := standin.Copy(f.workstation.file("bin")); err != nil {
		t.Fatal(err)
	}
	n := c.startNode(t, "attic")
	for _, host := range []*node{f.workstation, f.box, n} {
		writeRegistries(t, host, registry)
	}
	const busybox = registry + "/library/busybox:1.37"
	f.workstation.importImage(t, busybox)
	f.workstation.podrun(t, "image", "push", busybox)
	return f
}

// startRegistry starts a registry, which has no TLS, at an address.
func (d *developer) startRegistry(t *testing.T, address string) {
	t.Helper()
	config := d.file("registry.yml")
	writeFile(t, config, fmt.Appendf(nil, "version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %q}}\nhttp: {addr: %q}\n", d.file("registry"), address))
	cmd := d.program("docker-registry", "serve", config)
	cmd.Env = append(cmd.Env, "OTEL_TRACES_EXPORTER=none")
	startProcess(t, cmd, d.file("registry.log"))
	d.waitFor(t, "the registry", func() bool {
		answer, err := http.Get("http://" + address + "/v2/")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// writeRegistries tells the programs of a host that the registry at an address has no TLS.
func writeRegistries(t *testing.T, n *node, address string) {
	t.Helper()
	dir := n.file(".config/containers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "registries.conf"), fmt.Appendf(nil, "[[registry]]\nlocation = %q\ninsecure = true\n", address))
}

// startFlux does what flux install does, but that the controllers are no pods: their images are on the internet.
func (c *controlPlane) startFlux(t *testing.T) {
	t.Helper()
	programs := os.Getenv(fluxEnv)
	c.kubectl(t, "create", "namespace", fluxNamespace)
	definitions := filepath.Join(programs, "flux.yaml")
	c.kubectl(t, "apply", "-f", definitions, "--server-side")
	c.kubectl(t, "wait", "-f", definitions, "--for=condition=Established", "--timeout="+timeout.String())
	artifacts := c.file("artifacts")
	if err := os.Mkdir(artifacts, 0o700); err != nil {
		t.Fatal(err)
	}
	const storage = "127.0.0.1:9790"
	for program, args := range map[string][]string{
		"source-controller":    {"--storage-path", artifacts, "--storage-addr", storage, "--storage-adv-addr", storage, "--health-addr", "127.0.0.1:9440"},
		"kustomize-controller": {"--health-addr", "127.0.0.1:9441"},
	} {
		cmd := c.program(filepath.Join(programs, program), append(args, "--metrics-addr", "0")...)
		cmd.Env = append(cmd.Env, "RUNTIME_NAMESPACE="+fluxNamespace, "TMPDIR="+c.dir)
		startProcess(t, cmd, c.file(program+".log"))
	}
}

// next returns the next block of the page.
func (f *fluxPage) next() howto.Block {
	b := f.blocks[0]
	f.blocks = f.blocks[1:]
	return b
}

// onWorkstation runs commands of the page, which must succeed.
func (f *fluxPage) onWorkstation(t *testing.T, commands string) {
	t.Helper()
	cmd := f.workstation.prepare(exec.Command("sh", "-exc", f.names.Replace(commands)))
	cmd.Env = append(cmd.Env, "PATH="+strings.Join([]string{f.workstation.file("bin"), filepath.Dir(os.Getenv(podrunEnv)), os.Getenv("PATH")}, ":"))
	run(t, cmd)
}

// onServer runs commands of the page as the cluster's administrator, which must succeed, and returns their output.
func (f *fluxPage) onServer(t *testing.T, commands string) string {
	t.Helper()
	cmd := f.program("sh", "-exc", commands)
	cmd.Dir = f.workstation.dir
	return run(t, cmd)
}

// A workload is what the pods of a cluster and of a box have in common.
type workload struct {
	Metadata struct{ Labels struct{ App string } }
	Spec     struct {
		TerminationGracePeriodSeconds int
		Containers                    []struct {
			Name, Image    string
			Command, Args  []string
			Env            []map[string]any
			ReadinessProbe map[string]any
		}
	}
	Status struct {
		Phase             string
		ContainerStatuses []struct{ Ready bool }
	}
}

// workloadsOf returns the pods that a command lists, as text.
func workloadsOf(t *testing.T, list *exec.Cmd) string {
	t.Helper()
	var pods struct{ Items []workload }
	if err := json.Unmarshal([]byte(run(t, list)), &pods); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pods.Items, func(a, b workload) int { return strings.Compare(a.Metadata.Labels.App, b.Metadata.Labels.App) })
	text, err := json.MarshalIndent(pods.Items, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// follow makes the box run what the tag stable is, with the variable that the cluster has.
func (f *fluxPage) follow(t *testing.T) {
	t.Helper()
	env := f.box.file("box.env")
	writeFile(t, env, []byte("BOX=cluster\n"))
	f.box.podrun(t, "follow", "--once", "--stable", "0s", "--env-file", env, f.names.Replace("oci://registry.example.org/site:stable"))
}

// samePods waits until the box and the cluster run the same two pods, of a version.
func (f *fluxPage) samePods(t *testing.T, version string) {
	t.Helper()
	var onBox, inCluster string
	defer func() {
		if t.Failed() {
			t.Logf("the box has the pods\n%s\nthe cluster has\n%s", onBox, inCluster)
		}
	}()
	f.waitFor(t, "the pods of "+version, func() bool {
		onBox = workloadsOf(t, f.box.command("get", "pods", "-o", "json"))
		inCluster = workloadsOf(t, f.kubectlCommand("get", "pods", "-o", "json"))
		return onBox == inCluster && strings.Count(onBox, `"Running"`) == 2 && strings.Contains(onBox, version+" in the cluster")
	})
}

// refusesUnsigned: Flux verifies what it applies. look makes it look at the tag.
func (f *fluxPage) refusesUnsigned(t *testing.T, look string) {
	t.Helper()
	f.onWorkstation(t, "sed -i 's/version 1.3/version 1.4/' site/web.yaml; podrun image push --pin site/ oci://registry.example.org/site:stable --revision 1.4")
	f.onServer(t, look)
	f.kubectl(t, "wait", "ocirepository/site", "-n", fluxNamespace, "--for=condition=SourceVerified=False", "--timeout="+timeout.String())
}
