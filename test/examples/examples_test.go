// Package examples runs every manifest of examples/ with the built binary, as an ordinary user, and
// checks logs, `podrun ps` and exit codes.
package examples

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// expectation is the expected behavior of one example.
type expectation struct {
	exits bool              // `podrun up` exits by itself, with exit code 0 and the pod Succeeded
	logs  map[string]string // by container: a regular expression for its log
	shows []string          // regular expressions for its row of `podrun ps`

	// waits and waitsLogs: the pod waits, with such a row and such a log, until another example is
	// applied.
	waits     string
	waitsLogs map[string]string
	until     string
}

// expectations has an entry for each example; an example without one fails.
var expectations = map[string]expectation{
	"config.yaml": {
		exits: true,
		logs:  map[string]string{"app": `^blue, large, 32 MiB, a password of 13 letters\n$`},
		shows: []string{`^config +0/1 +Completed +0 `},
	},
	"hello.yaml": {
		exits: true,
		logs:  map[string]string{"hello": `^Hello, pod\n$`},
		shows: []string{`^hello +0/1 +Completed +0 `},
	},
	"hooks.yaml": {
		exits: true,
		logs:  map[string]string{"second": `^version 7\n$`, "queue": `^draining the queue: --reason=Dependency\nqueue stopped\n$`},
		shows: []string{`^hooks +0/3 +Completed +0 `},
	},
	"limits.yaml": {
		exits: true,
		logs:  map[string]string{"prepare": "prepared", "one": "one is done", "two": "two is done"},
		shows: []string{`^limits +0/2 +Completed +0 `},
	},
	"myapp-pod.yaml": {
		waits:     `^myapp-pod +0/1 +Init:0/2 +0 `,
		waitsLogs: map[string]string{"init-myservice": "(?s)NXDOMAIN.*waiting for myservice\n"},
		until:     "myapp-services.yaml",
		logs:      map[string]string{"init-mydb": `Name:	mydb\.default\.svc\.cluster\.local`, "myapp-container": "^The app is running!\n"},
		shows:     []string{`^myapp-pod +1/1 +Running +0 `},
	},
	"probes.yaml": {
		exits: true,
		logs:  map[string]string{"worker": "the server answers: I am well\nthis time it works"},
		shows: []string{`^probes +0/2 +Completed +1 `},
	},
	"restart.yaml": {
		exits: true,
		logs:  map[string]string{"flaky": "this time it works"},
		shows: []string{`^restart +0/1 +Completed +1 `},
	},
	"shared-pid.yaml": {
		exits: true,
		logs:  map[string]string{"worker": "asked to stop", "peer": "the worker is process [0-9]+, process 1 is the sandbox"},
		shows: []string{`^shared-pid +0/2 +Completed +0 `},
	},
	"sidecar.yaml": {
		exits: true,
		logs:  map[string]string{"printer": "printed: page one\n(.*\n)*printer stopped", "app": "app is done"},
		shows: []string{`^sidecar +0/2 +Completed +0 `},
	},
	"volumes.yaml": {
		exits: true,
		logs: map[string]string{"app": `^visit 0
<h1>Hello</h1>
<h1>Hello</h1>
app="shop"
tier="web"

a password of 13 letters
scratch is read-only here
the claim takes more than the scratch
/tools/bin/busybox
$`},
		shows: []string{`^volumes +0/1 +Completed +0 `},
	},
	"web.yaml": {
		logs: map[string]string{
			"content": "content is ready",
			"render":  "rendered: a pod named web",
			"watcher": "<h1>Hello from a pod named web</h1>\n(.*\n)*update [0-9]+\n(.*\n)*update [0-9]+",
		},
		shows: []string{`^web +3/3 +Running +0 `},
	},
}

func TestEveryExampleIsExpected(t *testing.T) {
	files, err := filepath.Glob(dir + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no examples in %s: %v", dir, err)
	}
	there := map[string]bool{}
	for _, f := range files {
		name := filepath.Base(f)
		there[name] = true
		if _, ok := expectations[name]; !ok && !isPart(name) {
			t.Errorf("examples/%s has no expectation: add one to examples_test.go", name)
		}
	}
	for name, want := range expectations {
		for _, name := range []string{name, want.until} {
			if name != "" && !there[name] {
				t.Errorf("there is no examples/%s any more", name)
			}
		}
	}
}

// isPart reports whether an example belongs to another.
func isPart(name string) bool {
	for _, want := range expectations {
		if want.until == name {
			return true
		}
	}
	return false
}

func TestExamples(t *testing.T) {
	p := setUp(t)
	for file, want := range expectations {
		t.Run(file, func(t *testing.T) {
			pod := file[:len(file)-len(filepath.Ext(file))]
			p.cleanUp(t, pod)
			path := filepath.Join(dir, file)
			switch {
			case want.exits:
				p.run(t, "up", path)
			case want.until != "":
				p.waits(t, pod, path, want)
			default:
				p.run(t, "up", "-d", path)
			}
			for container, pattern := range want.logs {
				p.logged(t, pod, container, pattern)
			}
			for _, pattern := range want.shows {
				p.matches(t, pattern, "ps")
			}
			if phase := p.phase(t, pod); want.exits != (phase == "Succeeded") {
				t.Errorf("the pod's phase is %s", phase)
			}
			if want.until == "" {
				p.run(t, "down", pod)
			} else {
				p.run(t, "down", "--grace-period", "1", pod) // its sleep never ends
				p.run(t, "delete", "-f", filepath.Join(dir, want.until))
			}
			p.nothingLeft(t)
		})
	}
}

// waits starts a pod that waits, and ends the wait.
func (p *podrun) waits(t *testing.T, pod, path string, want expectation) {
	t.Helper()
	p.run(t, "apply", "-f", path)
	for container, pattern := range want.waitsLogs {
		p.logged(t, pod, container, pattern)
	}
	p.matches(t, want.waits, "ps")
	p.run(t, "apply", "-f", filepath.Join(dir, want.until))
}

// TestKilledUp: the pod survives the death of the command in the foreground.
func TestKilledUp(t *testing.T) {
	p := setUp(t)
	p.cleanUp(t, "web")
	up := p.start(t, "up", filepath.Join(dir, "web.yaml"))
	p.logged(t, "web", "watcher", "update")
	if err := up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	up.Wait() // killed: ignore its exit status
	p.matches(t, `^web +3/3 +Running `, "ps")
	p.run(t, "down", "web")
	p.nothingLeft(t)
}

func (p *podrun) phase(t *testing.T, pod string) string {
	t.Helper()
	var got struct{ Status struct{ Phase string } }
	if err := json.Unmarshal([]byte(p.run(t, "get", pod, "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	return got.Status.Phase
}
