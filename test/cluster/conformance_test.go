package cluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	conformanceEnv = "PODRUN_CONFORMANCE"       // directory of Kubernetes' tests and of the root file systems of their images
	outEnv         = "PODRUN_CONFORMANCE_OUT"   // directory for the reports
	focusEnv       = "PODRUN_CONFORMANCE_FOCUS" // regular expressions of ginkgo
	skipEnv        = "PODRUN_CONFORMANCE_SKIP"
	procsEnv       = "PODRUN_CONFORMANCE_PROCS" // how many tests run at a time

	testRegistryPort = ":5000" // of the host, for the images of Kubernetes' tests
)

// A testImage is an image of Kubernetes' tests (kubernetes: test/images).
type testImage struct {
	names  []string
	rootfs string // a tar in conformanceEnv
	config map[string]any
	files  []tarFile // more files
}

var testImages = []testImage{
	{names: []string{"kitten:1.8"}, rootfs: "agnhost", config: map[string]any{"Cmd": []string{"/agnhost", "test-webserver"}}, files: []tarFile{
		{"data.json", 0o644, []byte(`{"image": "kitten.jpg"}`)},
		{"etc/os-release", 0o644, []byte(`NAME="Alpine Linux"`)}, // of the image that this one replaces: a test reads it
	}},
	{names: []string{"nautilus:1.8"}, rootfs: "agnhost", config: map[string]any{"Cmd": []string{"/agnhost", "test-webserver"}}, files: []tarFile{
		{"data.json", 0o644, []byte(`{"image": "nautilus.jpg"}`)},
	}},
	{names: []string{"agnhost:2.63.0", "agnhost:2.55"}, rootfs: "agnhost", config: map[string]any{"Entrypoint": []string{"/agnhost"}, "Cmd": []string{"pause"}}},
	{names: []string{"glibc-dns-testing:2.0.0"}, rootfs: "agnhost", config: map[string]any{"Cmd": []string{"sleep", "100000"}}},
	{names: []string{"busybox:1.37.0-1"}, rootfs: "busybox", config: map[string]any{"Cmd": []string{"sh"}}},
	{names: []string{"nonroot:1.5"}, rootfs: "busybox", config: map[string]any{"Cmd": []string{"sh"}, "User": "1234"}},
	{names: []string{"nginx:1.15-4", "nginx:1.27-0"}, rootfs: "agnhost", config: map[string]any{"Cmd": []string{"nginx", "-g", "daemon off;"}}},
	{names: []string{"nonewprivs:1.4"}, rootfs: "nonewprivs", config: map[string]any{"Cmd": []string{"nnp"}}},
	{names: []string{"pause:3.10.2"}, rootfs: "pause", config: map[string]any{"Entrypoint": []string{"/pause"}, "User": "65535:65535"}},
	{names: []string{"sample-apiserver:1.29.2"}, rootfs: "sample-apiserver", config: map[string]any{"Entrypoint": []string{"/sample-apiserver"}}},
}

// knownReasons has why tests with a label fail, by parts of their names.
var knownReasons = map[string]string{
	"PrivilegedPod":  "the kernel has no module dummy",
	"InPlace Resize": "the machine has cgroups of version 1, which an ordinary user may not change; `TestCluster` of `test/vm` runs it where version 2 is delegated",
}

// unlabelledReasons has why tests without a label fail, by parts of their names.
var unlabelledReasons = map[string]string{
	"PersistentVolumes-local Pod with node different": noShell,
	"PersistentVolumes-expansion loopback":            noShell,
	"Mount propagation should propagate":              noShell,
	"kube-proxy urls":                                 "there is no kube-proxy: podrun is the proxy",
	"health check node port":                          "podrun has no health check node ports",
	"configurable pod resolv.conf":                    "the test's image has no CoreDNS",
}

const noShell = "it runs a shell in the node, which has none"

// conformanceNodes is how many nodes Kubernetes' tests for certified clusters need.
const conformanceNodes = 2

// TestConformance runs Kubernetes' own tests in a cluster of podrun cluster. It writes what certification asks for, junit_01.xml
// and e2e.log, ginkgo's report, the log of the cluster, and a page.
func TestConformance(t *testing.T) {
	d, out := newDeveloper(t), os.Getenv(outEnv)
	registry := os.Getenv(addressEnv) + testRegistryPort
	d.startRegistry(t, registry)
	writeRegistries(t, d.node, registry) // before create: the nodes use it
	for _, image := range testImages {
		if image.rootfs == "agnhost" {
			image.files = append(image.files, fakeRegistry(t)...)
		}
		archive := d.file("image.tar")
		names := image.write(t, archive, registry)
		d.podrun(t, "image", "load", archive)
		for _, name := range names {
			d.podrun(t, "image", "push", name)
		}
		if err := os.Remove(archive); err != nil {
			t.Fatal(err)
		}
	}
	d.podrun(t, "cluster", "create", "conformance", "--nodes", strconv.Itoa(conformanceNodes))
	writeFile(t, d.file("registries"), []byte("promoterE2eRegistry: "+registry+"/e2e\ngcRegistry: "+registry+"/e2e\n"))
	programs := os.Getenv(conformanceEnv)
	cmd := d.shell(`exec "$@"`)
	cmd.Args = append(cmd.Args, "ginkgo", filepath.Join(programs, "ginkgo"), "run", "--procs="+os.Getenv(procsEnv), "--timeout=2h", "--no-color", "--silence-skips", "--keep-going",
		"--output-dir="+out, "--json-report=report.json", "--focus="+os.Getenv(focusEnv), "--skip="+os.Getenv(skipEnv),
		filepath.Join(programs, "e2e.test"), "--",
		"--kubeconfig="+d.kubeconfig(), "--provider=skeleton", "--num-nodes="+strconv.Itoa(conformanceNodes), "--minStartupPods=0", "--kubectl-path="+filepath.Join(d.programs, "kubectl"), "--report-dir="+out)
	cmd.Env = append(cmd.Env, "KUBE_TEST_REPO_LIST="+d.file("registries"), "TMPDIR="+t.TempDir())
	log, err := os.Create(filepath.Join(out, "e2e.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, log), os.Stderr
	err = cmd.Run() // an error if a test fails
	writeFile(t, filepath.Join(out, "cluster.log"), []byte(d.podrun(t, "cluster", "logs", "conformance")))
	results := readReport(t, filepath.Join(out, "report.json"))
	if len(results) == 0 {
		t.Fatalf("no test ran: %v", err)
	}
	for _, r := range results {
		if !r.passed && r.reason == "" {
			t.Errorf("failed: %s: %s", r.name, r.message)
		}
	}
	writeFile(t, filepath.Join(out, "conformance.md"), []byte(page(results)))
	version := strings.Fields(d.podrun(t, "--version"))[1]
	for _, name := range []string{"README.md", "PRODUCT.yaml"} {
		text := readFile(t, filepath.Join("testdata/certification", name))
		writeFile(t, filepath.Join(out, name), []byte(strings.ReplaceAll(text, "VERSION", version)))
	}
}

// write writes an archive with the image, and returns its names in a registry.
func (i *testImage) write(t *testing.T, path, registry string) (names []string) {
	t.Helper()
	layer, err := os.ReadFile(filepath.Join(os.Getenv(conformanceEnv), i.rootfs+".tar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range i.names {
		names = append(names, registry+"/e2e/"+name)
	}
	writeImage(t, path, [][]byte{layer, tarOf(t, i.files...)}, names, i.config)
	return names
}

// A tarFile is a file in a tar. A name that ends in / is a directory's.
type tarFile struct {
	name string
	mode int64
	data []byte
}

// tarOf returns a tar.
func tarOf(t *testing.T, files ...tarFile) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeImage writes an archive in docker's form with an image. Its layers are tars.
func writeImage(t *testing.T, path string, layers [][]byte, names []string, config map[string]any) {
	t.Helper()
	config["Env"] = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var files []tarFile
	var layerNames, ids []string
	for i, layer := range layers {
		name := fmt.Sprintf("layer-%d.tar", i)
		files = append(files, tarFile{name, 0o644, layer})
		layerNames, ids = append(layerNames, name), append(ids, fmt.Sprintf("sha256:%x", sha256.Sum256(layer)))
	}
	description := describe(t, config, ids)
	manifest := encode(t, []any{map[string]any{"Config": "config.json", "RepoTags": names, "Layers": layerNames}})
	writeFile(t, path, tarOf(t, append(files, tarFile{"manifest.json", 0o644, manifest}, tarFile{"config.json", 0o644, description})...))
}

// describe returns the config of an image.
func describe(t *testing.T, config map[string]any, layers []string) []byte {
	t.Helper()
	return encode(t, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": layers},
	})
}

// fakeRegistry returns the files from which agnhost serves the image pause:testing (kubernetes:
// test/images/agnhost/fakeregistryserver).
func fakeRegistry(t *testing.T) (files []tarFile) {
	t.Helper()
	const dir, oci = "var/registry/pause/", "application/vnd.oci.image."
	store := func(kind, mediaType string, data []byte) map[string]any {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		files = append(files, tarFile{dir + kind + "/sha256/" + sum[:2] + "/" + sum + "/data", 0o644, data})
		return map[string]any{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(data)}
	}
	layer := store("blobs", oci+"layer.v1.tar", []byte(readFile(t, filepath.Join(os.Getenv(conformanceEnv), "pause.tar"))))
	config := store("blobs", oci+"config.v1+json", describe(t, map[string]any{"Entrypoint": []string{"/pause"}}, []string{layer["digest"].(string)}))
	manifest := store("manifests", oci+"manifest.v1+json", encode(t, map[string]any{
		"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": config, "layers": []any{layer},
	}))
	return append(files, tarFile{dir + "manifests/testing", 0o644, []byte(manifest["digest"].(string))})
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A result is the outcome of one of Kubernetes' tests.
type result struct {
	name, file string
	passed     bool
	message    string // of a failure
	reason     string // why it cannot pass on this machine
}

// readReport reads ginkgo's report, in the order of files and names.
func readReport(t *testing.T, path string) (results []result) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			LeafNodeLocation        struct{ FileName string }
			State                   string
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		for _, r := range s.SpecReports {
			if r.LeafNodeType != "It" || r.State == "skipped" || r.State == "pending" {
				continue
			}
			_, file, _ := strings.Cut(r.LeafNodeLocation.FileName, "/e2e/")
			next := result{name: strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " "), file: file, passed: r.State == "passed", message: r.Failure.Message}
			for _, reasons := range []map[string]string{knownReasons, unlabelledReasons} {
				for part, reason := range reasons {
					if strings.Contains(next.name, part) {
						next.reason = reason
					}
				}
			}
			results = append(results, next)
		}
	}
	slices.SortFunc(results, func(a, b result) int { return cmp.Or(strings.Compare(a.file, b.file), strings.Compare(a.name, b.name)) })
	return results
}

// podmanPassed are the tests that podman passed (podman kube play 4.3.1 behind an agent that passed it the pods and
// reported their status, as root, in November 2026), by file.
var podmanPassed = map[string]int{
	"common/network/networking.go": 4, "common/node/configmap.go": 2, "common/node/container_probe.go": 8, "common/node/containers.go": 4,
	"common/node/downwardapi.go": 2, "common/node/init_container.go": 2, "common/node/kubelet.go": 3, "common/node/lifecycle_hook.go": 2,
	"common/node/node_lease.go": 2, "common/node/pod_hostnameoverride.go": 3, "common/node/pods.go": 6, "common/node/runtimeclass.go": 4,
	"common/node/security_context.go": 10, "common/node/sysctl.go": 1, "common/storage/configmap_volume.go": 6, "common/storage/empty_dir.go": 6,
	"common/storage/host_path.go": 2, "common/storage/projected_configmap.go": 1, "common/storage/projected_secret.go": 1, "common/storage/secrets_volume.go": 1,
}

// pageText is the page. Words in capitals are replaced.
const pageText = `# Conformance

Kubernetes has tests of what a node does, in its program e2e.test: NodeConformance, and among the tests for certified clusters,
Conformance. ` + "`make conformance`" + ` runs them in a cluster of Kubernetes 1.36 with two nodes, which ` + "`podrun cluster create --nodes 2`" + ` of an ordinary
user makes. It leaves in ` + "`bin/conformance`" + ` the results and logs that [Kubernetes' certification](https://github.com/cncf/k8s-conformance) asks for: ` + "`README.md`" + `,
` + "`PRODUCT.yaml`, `junit_01.xml` and `e2e.log`" + `.

## NodeConformance: PASSED of ALL

Podman passes PODMAN of the same tests: podman kube play 4.3.1, as root, behind an agent that passed the pods to it and reported their
status.

| tests | number | podrun | podman |
|---|---|---|---|
NODETABLE
## Conformance: OTHERPASSED of OTHERALL

The tests that a certified cluster passes. Some are NodeConformance tests, too.

| tests | number | podrun |
|---|---|---|
OTHERTABLE
## Failed

FAILED
## Tests without a label

Of 278 tests of applications, kubectl, networks, nodes and storage that have no label, 61 need CSI drivers or flexvolumes, an NFS server, disks of a
cloud or SSH to the nodes. ` + "`scripts/conformance '\\[sig-(apps|cli|network|node|storage)\\] [^\\[]*$' 'CSI Mock|NFS|Flexvolumes|AWS|SSH'`" + ` runs the others.
Known to fail are, by parts of their names:

UNLABELLED`

// A share is a number of tests, and how many of them passed.
type share struct{ all, passed int }

func (s share) with(r *result) share {
	s.all++
	if r.passed {
		s.passed++
	}
	return s
}

// page returns docs/reference/conformance.md.
func page(results []result) string {
	var failed, node, other, unlabelled strings.Builder
	nodeFiles, groups := map[string]share{}, map[string]share{}
	var nodeAll, otherAll share
	podman := 0
	for i := range results {
		r := &results[i]
		if strings.Contains(r.name, "[NodeConformance]") {
			nodeFiles[r.file], nodeAll = nodeFiles[r.file].with(r), nodeAll.with(r)
		}
		if strings.Contains(r.name, "[Conformance]") {
			group := path.Dir(r.file)
			groups[group], otherAll = groups[group].with(r), otherAll.with(r)
		}
		if !r.passed {
			fmt.Fprintf(&failed, "- %s: %s\n", r.name, cmp.Or(r.reason, "a defect"))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(nodeFiles)) {
		s := nodeFiles[file]
		fmt.Fprintf(&node, "| %s | %d | %d | %d |\n", file, s.all, s.passed, podmanPassed[file])
		podman += podmanPassed[file]
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		s := groups[group]
		fmt.Fprintf(&other, "| %s | %d | %d |\n", group, s.all, s.passed)
	}
	for _, part := range slices.Sorted(maps.Keys(unlabelledReasons)) {
		fmt.Fprintf(&unlabelled, "- %s: %s\n", part, unlabelledReasons[part])
	}
	return strings.NewReplacer("UNLABELLED", unlabelled.String(), "OTHERPASSED", fmt.Sprint(otherAll.passed), "OTHERALL", fmt.Sprint(otherAll.all), "OTHERTABLE", other.String(),
		"NODETABLE", node.String(), "PASSED", fmt.Sprint(nodeAll.passed), "ALL", fmt.Sprint(nodeAll.all), "PODMAN", fmt.Sprint(podman),
		"FAILED", failed.String()).Replace(pageText)
}
