package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// servedManifests are a Deployment behind a Service, and a plain pod with a host port.
const servedManifests = `
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        image: busybox
        imagePullPolicy: Never
        command: [sh, -c, "trap exit TERM; mkdir /w; echo VERSION >/w/index.html; httpd -p 8080 -h /w; sleep 1000 & wait"]
        lifecycle: {preStop: {sleep: {seconds: 1}}}
        readinessProbe: {periodSeconds: 1, httpGet: {path: "/PATH", port: 8080}}
---
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  containers:
  - name: c
    image: busybox
    imagePullPolicy: Never
    command: [sh, -c, "trap exit TERM; mkdir /w; echo VERSION >/w/index.html; httpd -p 8080 -h /w; sleep 1000 & wait"]
    ports: [{containerPort: 8080, hostPort: HOSTPORT}]
    readinessProbe: {periodSeconds: 1, httpGet: {path: "/PATH", port: 8080}}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  containers: [{name: c, image: busybox, imagePullPolicy: Never, command: [sh, -c, "trap exit TERM; sleep 1000 & wait"]}]
`

// requester sends requests one after the other, each over a connection of its own.
type requester struct {
	url      string
	answers  map[string]int
	failures []string
	gap      time.Duration // the longest time from an answer to the next
}

// run sends requests until ctx ends.
func (r *requester) run(ctx context.Context) {
	r.answers = map[string]int{}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	last := time.Now()
	for ctx.Err() == nil {
		answer, err := client.Get(r.url)
		if err != nil {
			r.failures = append(r.failures, err.Error())
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			r.failures = append(r.failures, fmt.Sprintf("%s: %v", answer.Status, err))
			continue
		}
		r.answers[strings.TrimSpace(string(text))]++
		r.gap, last = max(r.gap, time.Since(last)), time.Now()
	}
}

// total returns the number of answers.
func (r *requester) total() (n int) {
	for _, k := range r.answers {
		n += k
	}
	return n
}

// servedSet is a directory that a host follows.
type servedSet struct {
	host          *host
	dir, hostPort string
}

func newServedSet(t *testing.T, h *host) *servedSet {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	_, hostPort, _ := net.SplitHostPort(free.Addr().String())
	return &servedSet{h, filepath.Join(h.dir, "set"), hostPort}
}

// follow applies a version of the set, whose pods are ready if the server has the path.
func (s *servedSet) follow(version, path string, options ...string) (string, error) {
	text := strings.NewReplacer("VERSION", version, "PATH", path, "HOSTPORT", s.hostPort).Replace(servedManifests)
	err := errors.Join(os.MkdirAll(s.dir, 0o700), os.WriteFile(filepath.Join(s.dir, "set.yaml"), []byte(text), 0o600))
	if err != nil {
		return "", err
	}
	out, err := s.host.podrun(append([]string{"follow", "--once", "--stable", "0s", s.dir}, options...)...).CombinedOutput()
	return string(out), err
}

// TestSetBehindService: no request of a pod to a Service fails while its Deployment gets a new version, then one that is never
// ready, and goes back. A node port may reset a connection (decision 24), and a plain pod has a gap: both are reported.
func TestSetBehindService(t *testing.T) {
	t.Parallel()
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	n, long := 300, os.Getenv(tortureEnv) != ""
	if long {
		n = 10_000
	}
	set := newServedSet(t, h)
	plain := requester{url: "http://127.0.0.1:" + set.hostPort}
	if out, err := set.follow("good1", ""); err != nil {
		t.Fatalf("follow: %v\n%s", err, out)
	}
	inside := h.podrun("exec", "client", "--", "sh", "-c",
		fmt.Sprintf("i=0; while [ $i -lt %d ] || ! [ -e /done ]; do i=$((i+1)); wget -q -O - http://web 2>&1; done | sort | uniq -c", n))
	var answers bytes.Buffer
	inside.Stdout, inside.Stderr = &answers, &answers
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	port, err := h.podrun("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}").Output()
	if err != nil {
		t.Fatal(err)
	}
	nodePort := requester{url: "http://127.0.0.1:" + string(port)}
	var all sync.WaitGroup
	all.Go(func() { nodePort.run(ctx) })
	all.Go(func() { plain.run(ctx) })
	ended := make(chan error, 1)
	go func() { ended <- inside.Wait() }()
	for round := 2; inside != nil; round++ {
		if out, err := set.follow(fmt.Sprintf("good%d", round), ""); err != nil {
			t.Errorf("a good version: %v\n%s", err, out)
		}
		out, err := set.follow(fmt.Sprintf("bad%d", round), "missing", "--timeout", "3s")
		if err == nil || !strings.Contains(out, "it is back at its former version") {
			t.Errorf("a version that is never ready: %v\n%s", err, out)
		}
		if round == 2 {
			h.must(t, "exec", "client", "--", "touch", "/done")
		}
		if !long || len(ended) > 0 {
			if err := <-ended; err != nil {
				t.Errorf("the client: %v", err)
			}
			inside = nil
		}
	}
	stop()
	all.Wait()
	t.Logf("answers in the pod:\n%s", &answers)
	for _, kind := range []struct{ name, answers string }{{"in the pod", answers.String()}, {"at the node port", fmt.Sprint(nodePort.answers)}} {
		if !strings.Contains(kind.answers, "good1") || !strings.Contains(kind.answers, "good2") {
			t.Errorf("%s no answer by each version: %s", kind.name, kind.answers)
		}
	}
	for line := range strings.Lines(answers.String()) {
		if !strings.Contains(line, " good") {
			t.Errorf("no answer by a ready version: %s", line)
		}
	}
	t.Logf("node port: %d answers, the longest time without one %v; not answered: %q", nodePort.total(), nodePort.gap.Round(time.Millisecond), nodePort.failures)
	t.Logf("plain pod: %d answers, the longest time without one %v", plain.total(), plain.gap.Round(time.Millisecond))
	h.must(t, "follow", "rm", "set")
	h.nothingLeft(t)
}
