package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/scriptcmd"
)

const refusedPod = `apiVersion: v1
kind: ConfigMap
metadata: {name: remains}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: remains}
stringData: {a: "1"}
---
apiVersion: v1
kind: Pod
metadata:
  name: remains
  labels: {app: web}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 1000, fsGroup: 1000}
  initContainers:
  - name: prepare
    image: busybox
    imagePullPolicy: Never
    command: ["true"]
  containers:
  - name: app
    image: busybox
    imagePullPolicy: Never
    command: [sleep, "1000"]
    ports: [{containerPort: 80}]
    env: [{name: A, valueFrom: {configMapKeyRef: {name: remains, key: a}}}]
    resources: {limits: {memory: 64Mi}}
    volumeMounts:
    - {name: e, mountPath: /e, subPath: x}
    - {name: m, mountPath: /m, readOnly: true}
    - {name: c, mountPath: /c}
    - {name: h, mountPath: /h}
  volumes:
  - {name: e, emptyDir: {}}
  - {name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: c, projected: {sources: [{configMap: {name: remains}}, {secret: {name: remains, items: [{key: a, path: b}]}}]}}
  - {name: h, hostPath: {path: /usr, type: Directory}}
`

// refusals are changes of refusedPod; some are detected late.
var refusals = [][2]string{
	{"runAsUser: 1000", "runAsUser: 4000000000"},
	{"runAsUser: 1000", "runAsUser: 1000000000"},
	{"runAsUser: 1000", "runAsUser: 0, runAsNonRoot: true, seccompProfile: {type: Localhost, localhostProfile: no/such.json}"},
	{"name: app\n    image: busybox", "name: app\n    image: nowhere:1"},
	{"name: app\n    image: busybox", "name: app\n    image: UPPER//x"},
	{"mountPath: /e", "mountPath: ''"},
	{"mountPath: /m", "mountPath: /e"},
	{"subPath: x", "subPath: ../x"},
	{"emptyDir: {}", "nfs: {server: x, path: /}"},
	{"emptyDir: {}", "hostPath: {path: ../x}"},
	{"emptyDir: {}", "image: {reference: 'nowhere:1', pullPolicy: Never}"},
	{"medium: Memory", "medium: HugePages"},
	{"items: [{key: a, path: b}]", "items: [{key: a, path: ../../b}]"},
	{"stringData: {a: \"1\"}", "stringData: {../a: \"1\"}"},
	{"memory: 64Mi", "hugepages-2Mi: 4Mi, memory: 64Mi"},
	{"containerPort: 80", "containerPort: 80, hostPort: 70000"},
	{"kind: Secret\nmetadata: {name: remains}", "kind: Secret\nmetadata: {name: ../remains}"},
	{"kind: ConfigMap", "kind: Nothing"},
	{"labels: {app: web}", "labels: {app: web}\n  namespace: ../../x"},
	{"terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 0\n  volumes: []"},
}

// mutate changes one place of a manifest.
func mutate(r *rand.Rand, text string) string {
	tokens := []string{"..", "/", "a/b", `"\0"`, "-1", "99999999999999999999", "null", "[]", "{}", "*x", "&x y", "!!binary x", `"$(X)"`, "true", "'", "\t", strings.Repeat("x", 300), "{a: b}", "\xff\xfe", "---"}
	token := tokens[r.IntN(len(tokens))]
	lines := strings.SplitAfter(text, "\n")
	index := r.IntN(len(lines))
	switch r.IntN(5) {
	case 0:
		lines = slices.Delete(lines, index, index+1)
	case 1:
		lines = slices.Insert(lines, index, lines[r.IntN(len(lines))])
	case 2:
		if key, _, ok := strings.Cut(lines[index], ": "); ok {
			lines[index] = key + ": " + token + "\n"
		}
	case 3:
		n := r.IntN(len(text))
		return text[:n] + token + text[n:]
	case 4:
		return text[:r.IntN(len(text))]
	}
	return strings.Join(lines, "")
}

// snapshot lists what a command could leave changed: the user's files with their sizes, mounts,
// processes, and cgroups of pods.
func (h *host) snapshot() string {
	found := h.left()
	filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !strings.HasSuffix(path, "try.yaml") {
			size := int64(0)
			if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
				size = st.Size()
			}
			found = append(found, fmt.Sprint("file ", path, " ", size))
		}
		return nil
	})
	filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "podrun-") && strings.Count(e.Name(), "-") > 2 {
			found = append(found, "cgroup "+path)
		}
		return nil
	})
	return strings.Join(found, "\n")
}

// TestRefusedManifestsLeaveNothing: a rejected manifest leaves nothing behind, whatever its error
// and whenever it is detected; an accepted one leaves nothing behind after it is taken down.
func TestRefusedManifestsLeaveNothing(t *testing.T) {
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	h.env = append(h.env, "TMPDIR="+filepath.Join(h.dir, "home"))
	try := filepath.Join(h.dir, "try.yaml")
	if err := os.WriteFile(try, []byte(refusedPod), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(t, "up", "-d", try) // the manifest itself is not refused
	h.takeDown(t)
	before := h.snapshot()
	rounds, err := strconv.Atoi(os.Getenv("PODRUN_RACES"))
	if err != nil {
		rounds = 60
	}
	r := rand.New(rand.NewPCG(6, 6))
	refused := 0
	for i := range len(refusals) + rounds {
		text := mutate(r, refusedPod)
		if i < len(refusals) {
			if text = strings.Replace(refusedPod, refusals[i][0], refusals[i][1], 1); text == refusedPod {
				t.Fatalf("%q is not in the manifest", refusals[i][0])
			}
		}
		code, out := h.run(t, try, text)
		switch {
		case strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") || !slices.Contains([]int{0, 1, 2, 125}, code):
			t.Fatalf("code %d: %s\nof\n%s", code, out, text)
		case code == 0 && i < len(refusals):
			t.Errorf("%q is taken: %s", refusals[i][1], out)
			fallthrough
		case code == 0 || strings.Contains(out, "it keeps running") || strings.Contains(out, "the roll-out of") || strings.Contains(out, "keeps waiting for its images"): // to be corrected
			h.takeDown(t)
			before = h.snapshot() // with the objects that it had
			continue
		}
		refused++
		if !scriptcmd.Poll(func() bool { return h.snapshot() == before }) {
			t.Fatalf("%s\nleft of\n%s\nbefore:\n%s\nafter:\n%s", out, text, before, h.snapshot())
		}
	}
	if refused < len(refusals)+rounds/3 {
		t.Errorf("only %d manifests were refused", refused)
	}
}

// run runs a manifest.
func (h *host) run(t *testing.T, file, text string) (code int, out string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptcmd.Timeout)
	defer cancel()
	var output bytes.Buffer
	up := h.podrun("up", "-d", "--timeout", "5s", file)
	up.Stdout, up.Stderr = &output, &output
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { up.Process.Kill() })
	defer stop()
	err := up.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), output.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, output.String()
}

// takeDown removes every pod and checks that nothing is left.
func (h *host) takeDown(t *testing.T) {
	t.Helper()
	pods, err := filepath.Glob(filepath.Join(h.dir, "data/podrun/pods/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		down := h.podrun("down", "--force", "--volumes", filepath.Base(p), "-n", filepath.Base(filepath.Dir(p)))
		if out, err := down.CombinedOutput(); err != nil {
			t.Fatalf("down %s: %v: %s", p, err, out)
		}
	}
	var found []string
	if !scriptcmd.Poll(func() bool { found = h.left(); return len(found) == 0 }) {
		t.Fatalf("left behind:\n%s", strings.Join(found, "\n"))
	}
}
