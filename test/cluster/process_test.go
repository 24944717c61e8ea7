package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shownLog is how much of a log a failed test prints, in bytes.
const shownLog = 16 << 10

// A process runs in the background until its test ends.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// startProcess starts cmd with its output in the file log. When t ends it kills the process, and
// prints the end of the log if t has failed.
func startProcess(t *testing.T, cmd *exec.Cmd, log string) *process {
	t.Helper()
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			showLog(t, filepath.Base(p.cmd.Path), readFile(t, log))
		}
	})
	return p
}

// showLog prints the last lines of a log.
func showLog(t *testing.T, name, text string) {
	t.Helper()
	if len(text) > shownLog {
		text = text[len(text)-shownLog:]
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	t.Logf("log of %s:\n%s", name, text)
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

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
