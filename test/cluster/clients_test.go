package cluster

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// clients returns the control plane with each version of kubectl: the documentation names 1.34 and later.
func (c *controlPlane) clients(t *testing.T) (all []*controlPlane) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(c.programs, "kubectl*"))
	if err != nil || len(paths) != 4 {
		t.Fatalf("the versions of kubectl are %v, %v", paths, err)
	}
	for _, path := range paths {
		d := *c.developer
		d.client = filepath.Base(path)
		all = append(all, &controlPlane{&d, c.address, c.hash})
	}
	return all
}

// testClient: one version of kubectl reaches the pods of the node.
func testClient(t *testing.T, c *controlPlane) {
	if version, other := strings.CutPrefix(c.client, "kubectl-"); other && !strings.Contains(c.kubectl(t, "version", "--client"), "v"+version+".") {
		t.Errorf("%s has another version", c.client)
	}
	testStreams(t, c)
	c.apply(t, clientPods)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/shell", "pod/server", "--timeout="+timeout.String())
	testAttach(t, c)
	testPortForward(t, c, "server", "served\n")
	testDebug(t, c)
	testEvents(t, c)
	c.kubectl(t, "delete", "pod/shell", "pod/server", "--timeout="+timeout.String())
}

// clientPods are a shell that waits for input, and a server.
const clientPods = `
apiVersion: v1
kind: Pod
metadata: {name: shell}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers:
  - {name: main, image: "` + image + `", command: [sh], stdin: true, stdinOnce: true, tty: true}
---
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: "` + image + `"
    command: [sh, -c, "echo served > /index.html; exec httpd -f -p 8080 -h /"]
    readinessProbe: {httpGet: {path: /index.html, port: 8080}}
`

// testStreams: kubectl reads logs and reaches into containers.
func testStreams(t *testing.T, c *controlPlane) {
	if got := c.kubectl(t, "logs", "deployment/web"); got != "started sesame\n" {
		t.Errorf("logs: %q", got)
	}
	cmd := c.kubectlCommand("exec", "-i", "deployment/web", "--", "sh", "-c", "cat; echo problem >&2; exit 3")
	cmd.Stdin = strings.NewReader("input\n")
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 3 || out.String() != "input\n" || !strings.HasPrefix(errors.String(), "problem\n") {
		t.Errorf("exec: %v, output %q, errors %q", err, &out, &errors)
	}
	writeFile(t, c.file("copied"), []byte("from here\n"))
	pod := strings.TrimSpace(c.kubectl(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}"))
	c.kubectl(t, "cp", c.file("copied"), pod+":/tmp/copied")
	c.kubectl(t, "cp", pod+":/tmp/copied", c.file("back"))
	if got, err := os.ReadFile(c.file("back")); err != nil || string(got) != "from here\n" {
		t.Errorf("cp: %q, %v", got, err)
	}
}

// testAttach: kubectl attaches to a container's terminal, and its size follows.
func testAttach(t *testing.T, c *controlPlane) {
	cmd := c.kubectlCommand("attach", "-it", "shell")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 111})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	io.WriteString(terminal, "until [ \"$(stty size)\" = \"33 111\" ]; do sleep 0.1; done; echo the size is $((30+3)); exit\n")
	output, _ := io.ReadAll(terminal) // ends with an error when the other end is closed
	if err := cmd.Wait(); err != nil || !strings.Contains(string(output), "the size is 33") {
		t.Errorf("attach: %v\n%s", err, output)
	}
}

// testPortForward: kubectl forwards a local port into a pod, whose page is want.
func testPortForward(t *testing.T, c *controlPlane, pod, want string) {
	t.Helper()
	cmd := c.kubectlCommand("port-forward", "pod/"+pod, ":8080", "--address=127.0.0.1")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(output).ReadString('\n') // Forwarding from 127.0.0.1:PORT -> 8080
	fields := strings.Fields(line)
	if err != nil || len(fields) < 3 {
		t.Fatalf("port-forward: %q, %v", line, err)
	}
	for range 3 {
		response, err := http.Get("http://" + fields[2] + "/index.html")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("port-forward: %q, %v", body, err)
		}
	}
}

// testDebug: kubectl adds an ephemeral container to a running pod.
func testDebug(t *testing.T, c *controlPlane) {
	before := c.containerIDs(t)["server/main"]
	c.kubectl(t, "debug", "server", "--image="+image, "--container=debugger", "--", "sh", "-c", "echo from the debugger")
	c.kubectl(t, "wait", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0", "pod/server", "--timeout="+timeout.String())
	if got := c.kubectl(t, "logs", "server", "-c", "debugger"); got != "from the debugger\n" {
		t.Errorf("the debugger wrote %q", got)
	}
	if after := c.containerIDs(t)["server/main"]; after != before {
		t.Errorf("the container was %s and is %s", before, after)
	}
}

// describedStart matches the event of a start in the output of kubectl describe. Since 1.35 it names the container.
var describedStart = regexp.MustCompile(`Started .* kubelet +(spec.containers\{main\}: )?Container started`)

// testEvents: kubectl prints the events of a pod.
func testEvents(t *testing.T, c *controlPlane) {
	uid := c.kubectl(t, "get", "pod/server", "-o", "jsonpath={.metadata.uid}")
	c.waitFor(t, "the events of the pod", func() bool {
		got := c.kubectl(t, "get", "events", "--field-selector", "involvedObject.uid="+uid)
		return !slices.ContainsFunc([]string{" Scheduled ", " Created ", " Started "}, func(reason string) bool { return !strings.Contains(got, reason) })
	})
	if got := c.kubectl(t, "describe", "pod/server"); !describedStart.MatchString(got) {
		t.Errorf("describe prints no event of its start:\n%s", got)
	}
}
