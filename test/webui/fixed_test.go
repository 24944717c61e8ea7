package webui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/webui"
)

// fixedSamples is the number of samples of usage that a fixedSource has. The time stops with the last one.
const fixedSamples = 440

// fixedStart is the time at which a fixedSource starts.
var fixedStart = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// fixedSource has the same pods, usage, events and logs in every run.
type fixedSource struct{ samples atomic.Int64 }

// now returns the time of the last sample.
func (s *fixedSource) now() time.Time {
	return fixedStart.Add(time.Duration(min(s.samples.Load(), fixedSamples)) * 2 * time.Second)
}

// ago returns a time before the last sample.
func ago(d time.Duration) string {
	return fixedStart.Add(fixedSamples*2*time.Second - d).Format(time.RFC3339)
}

func (s *fixedSource) Watch(ctx context.Context, onChange func([]webui.Object, string)) {
	onChange(fixedObjects(), "")
	<-ctx.Done()
}

// Use returns one sample after the other, and then none.
func (s *fixedSource) Use() ([]webui.Usage, error) {
	if s.samples.Load() >= fixedSamples {
		return nil, errors.New("there are no more samples")
	}
	n := float64(s.samples.Add(1))
	const mi = 1 << 20
	var all []webui.Usage
	for i, p := range []struct {
		key                             string
		cpu, memory, limitCPU, limitMem int64
	}{
		{"default/web-7d9c5b6f4-k2x8p", int64(140 + 70*math.Sin(n/23) + 40*math.Sin(n/5)), int64((88 + 14*math.Sin(n/60) + n/40) * mi), 250, 128 * mi},
		{"default/web-7d9c5b6f4-q6tzm", int64(120 + 60*math.Cos(n/31) + 30*math.Sin(n/7)), int64((80 + 10*math.Cos(n/45)) * mi), 250, 128 * mi},
		{"default/postgres-0", int64(35 + 12*math.Sin(n/11)), int64((210 + n/12) * mi), 0, 512 * mi},
		{"monitoring/collector-5x9wd", int64(8 + 4*math.Sin(n/9)), 24 * mi, 100, 0},
	} {
		namespace, name, _ := strings.Cut(p.key, "/")
		limits := map[string]int64{}
		if p.limitCPU > 0 {
			limits["cpuMillicores"] = p.limitCPU
		}
		if p.limitMem > 0 {
			limits["memoryBytes"] = p.limitMem
		}
		detail := map[string]any{"namespace": namespace, "name": name, "cpuMillicores": p.cpu, "memoryWorkingSetBytes": p.memory, "limits": limits, "pids": 4 + i,
			"readBytesTotal": 3 * mi, "writtenBytesTotal": 41 * mi, "containers": []any{map[string]any{"name": "app", "cpuMillicores": p.cpu, "memoryWorkingSetBytes": p.memory}}}
		all = append(all, webui.Usage{Key: p.key, CPU: &p.cpu, Memory: &p.memory, Detail: detail})
	}
	return all, nil
}

// Logs returns lines of a web server, and waits for the end of the request.
func (s *fixedSource) Logs(ctx context.Context, of webui.LogRequest, line func(webui.Line)) error {
	for i := range 40 {
		line(webui.Line{Container: "app", Time: ago(time.Duration(40-i) * time.Second), Stream: "stdout", Text: fmt.Sprintf("GET /items/%d 200 in %d ms", 100+i*7%23, 3+i*5%17)})
	}
	line(webui.Line{Container: "app", Time: ago(0), Stream: "stderr", Text: "warning: the cache is nearly full"})
	<-ctx.Done()
	return nil
}

func (s *fixedSource) YAML(kind, key string) ([]byte, error) {
	return []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + key + "\n"), nil
}

// fixedPod makes a pod of one container.
func fixedPod(key, ready, status, restarts string, age time.Duration, container string) webui.Object {
	namespace, name, _ := strings.Cut(key, "/")
	app, _, _ := strings.Cut(name, "-")
	text := fmt.Sprintf(`{"ready": %q, "status": %q, "restarts": %q, "object": {
		"metadata": {"namespace": %q, "name": %q, "uid": %q, "creationTimestamp": %q, "labels": {"app": %q, "tier": "backend"}},
		"spec": {"restartPolicy": "Always", "containers": [{"name": "app", "image": "registry.example/%s:1.4.2",
			"ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
			"resources": {"limits": {"cpu": "250m", "memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
			"readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5}}]},
		"status": {"podIPs": [{"ip": "10.244.0.17"}], "containerStatuses": [{"name": "app", %s}],
			"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": %q}, {"type": "PodScheduled", "status": "True", "lastTransitionTime": %q}]}}}`,
		ready, status, restarts, namespace, name, name, ago(age), app, app, container, ago(age-4*time.Second), ago(age))
	return webui.Object{Kind: "pods", Key: key, JSON: []byte(text)}
}

func fixedObjects() []webui.Object {
	running := fmt.Sprintf(`"ready": true, "restartCount": 1, "state": {"running": {"startedAt": %q}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": %q}}`, ago(3*time.Hour), ago(3*time.Hour+20*time.Second))
	all := []webui.Object{
		fixedPod("default/backup-29112-8hv4c", "0/1", "Completed", "0", 50*time.Minute, fmt.Sprintf(`"state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": %q}}`, ago(49*time.Minute))),
		fixedPod("default/importer", "0/1", "CrashLoopBackOff", "6", 12*time.Minute, `"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container"}}`),
		fixedPod("default/postgres-0", "1/1", "Running", "0", 26*time.Hour, running),
		fixedPod("default/web-7d9c5b6f4-k2x8p", "1/1", "Running", "1", 5*time.Hour, running),
		fixedPod("default/web-7d9c5b6f4-q6tzm", "1/1", "Running", "0", 5*time.Hour, running),
		fixedPod("default/web-7d9c5b6f4-w9rbd", "0/1", "ContainerCreating", "0", 8*time.Second, `"state": {"waiting": {"reason": "ContainerCreating"}}`),
		fixedPod("monitoring/collector-5x9wd", "1/1", "Running", "0", 9*24*time.Hour, running),
	}
	for i, e := range []struct {
		kind, reason, pod, message string
		last                       time.Duration
		count                      int
	}{
		{"Normal", "Pulled", "web-7d9c5b6f4-w9rbd", `Container image "registry.example/web:1.4.2" already present on machine`, 7 * time.Second, 1},
		{"Warning", "BackOff", "importer", "Back-off restarting failed container app in pod importer", 35 * time.Second, 21},
		{"Warning", "Unhealthy", "web-7d9c5b6f4-k2x8p", "Readiness probe failed: HTTP probe failed with statuscode: 503", 4 * time.Minute, 3},
		{"Normal", "Started", "web-7d9c5b6f4-k2x8p", "Container started", 3 * time.Hour, 2},
	} {
		text := fmt.Sprintf(`{"metadata": {"namespace": "default", "name": "e%d"}, "type": %q, "reason": %q, "message": %q, "count": %d, "firstTimestamp": %q, "lastTimestamp": %q,
			"involvedObject": {"namespace": "default", "name": %q, "fieldPath": "spec.containers{app}"}}`, i, e.kind, e.reason, e.message, e.count, ago(e.last+10*time.Minute), ago(e.last), e.pod)
		all = append(all, webui.Object{Kind: "events", Key: fmt.Sprint("default/e", i), JSON: []byte(text)})
	}
	table := func(kind, columns string, rows ...string) {
		encode := func(v any) []byte {
			text, err := json.Marshal(v)
			if err != nil {
				panic(err) // strings cannot fail
			}
			return text
		}
		all = append(all, webui.Object{Kind: "tables", Key: kind, JSON: encode(map[string]any{"columns": strings.Split(columns, "|")})})
		for _, row := range rows {
			cells := strings.Split(row, "|")
			all = append(all, webui.Object{Kind: kind, Key: cells[0] + "/" + cells[1], JSON: encode(map[string]any{"cells": cells, "since": map[string]string{"AGE": ago(5 * time.Hour)}})})
		}
	}
	table("Deployment", "NAMESPACE|NAME|READY|UP-TO-DATE|AVAILABLE|AGE", "default|web|2/3|3|2|")
	table("StatefulSet", "NAMESPACE|NAME|READY|AGE", "default|postgres|1/1|")
	table("DaemonSet", "NAMESPACE|NAME|DESIRED|CURRENT|READY|UP-TO-DATE|AVAILABLE|NODE SELECTOR|AGE", "monitoring|collector|1|1|1|1|1||")
	table("Job", "NAMESPACE|NAME|STATUS|COMPLETIONS|DURATION|AGE", "default|backup-29112|Complete|1/1|42s|")
	table("CronJob", "NAMESPACE|NAME|SCHEDULE|TIMEZONE|SUSPEND|ACTIVE|LAST SCHEDULE|AGE", "default|backup|12 * * * *|Etc/UTC|False|0|50m|")
	return all
}

// serveFixed serves the page of a fixedSource and returns its address with the token.
func serveFixed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	source := &fixedSource{}
	s := &webui.Server{Source: source, Token: webui.NewToken(), Host: "box", Every: time.Millisecond, Now: source.now, Stall: stepTimeout}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	// Samples are taken while a page is open. One that is opened after the last sample gets all of them.
	r, err := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("http://%s/api/state", l.Addr()), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	state, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Body.Close()
	for in := bufio.NewReader(state.Body); source.samples.Load() < fixedSamples; {
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("http://%s/#token=%s", l.Addr(), s.Token)
}
