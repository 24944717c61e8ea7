package script

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/scriptcmd"
	"github.com/podrun/podrun/test/internal/howto"
)

// loopPage is the page whose commands TestDevelopmentLoop runs, and loopPlaces what the lines before its blocks begin with.
const loopPage = "../../docs/how-to/development-loop.md"

var loopPlaces = map[string]string{
	"A program, `server.js`": "server.js", "How it runs, `compose.yaml`": "compose.yaml", "A program, `main.go`": "main.go", "How it runs, `hello.yaml`": "hello.yaml",
	"Build it": "build", "Start it": "start", "Ask it": "ask", "Save a change": "change",
}

// TestDevelopmentLoop: each change that the page saves is seen in the answer of the program.
func TestDevelopmentLoop(t *testing.T) {
	t.Parallel()
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	// The developer has built programs before.
	h.env = append(h.env, "GOCACHE="+filepath.Join(cache, "go-build"), "GOTOOLCHAIN=local", "PATH="+bin+":"+os.Getenv("PATH"))
	l := &devLoop{T: t, host: h, blocks: howto.Read(t, loopPage, loopPlaces), work: h.dir}
	l.must("podrun image import " + rootfs + " docker.io/library/busybox:1.37")
	l.importNode(rootfs)

	l.begin("node", "server.js", "compose.yaml")
	end := l.start()
	l.answers("hello", l.next("ask"))
	l.answers("goodbye", l.next("change"))
	end()
	l.begin("go", "main.go", "hello.yaml")
	l.must(l.next("build"))
	end = l.start()
	l.answers("hello", l.next("ask"))
	l.answers("goodbye", l.next("change"))
	end()
	if len(l.blocks) > 0 {
		t.Errorf("the test does not do %q", l.blocks)
	}
}

// devLoop is a developer who follows the page.
type devLoop struct {
	*testing.T
	*host
	blocks []howto.Block
	work   string // the working directory
	port   string // in the place of 8080
}

// importNode makes the image of the page of the machine's own node and its libraries.
func (l *devLoop) importNode(rootfs string) {
	l.Helper()
	l.must(`mkdir image && cd image && tar -xf ` + rootfs + ` && node=$(readlink -f $(command -v node)) &&
		cp -L --parents $node $(ldd $node | grep -o '/[^ )]*') . && { [ -e bin/node ] || [ -e usr/bin/node ] || cp -L $node bin/node; } &&
		{ [ -e lib64 ] || ln -s usr/lib64 lib64; } && tar -cf ../node.tar . && cd .. && chmod -R u+w image && rm -r image && podrun image import node.tar docker.io/library/node:22-slim`)
}

// begin makes a working directory with the next files of the page, and finds a free port.
func (l *devLoop) begin(dir string, files ...string) {
	l.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	l.port = fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	l.work = filepath.Join(l.dir, dir)
	if err := os.Mkdir(l.work, 0o755); err != nil {
		l.Fatal(err)
	}
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(l.work, name), []byte(l.next(name)), 0o644); err != nil {
			l.Fatal(err)
		}
	}
}

// next returns the next block, which must be of a place. Its host port is a free one.
func (l *devLoop) next(where string) string {
	l.Helper()
	if len(l.blocks) == 0 || l.blocks[0].Where != where {
		l.Fatalf("the next block of the page is not of %q: %v", where, l.blocks)
	}
	text := l.blocks[0].Text()
	l.blocks = l.blocks[1:]
	return strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:"+l.port, "hostPort: 8080", "hostPort: "+l.port).Replace(text)
}

func (l *devLoop) shell(script string) *exec.Cmd {
	cmd := l.command("sh", "-ec", script)
	cmd.Dir = l.work
	return cmd
}

// must runs a script.
func (l *devLoop) must(script string) {
	l.Helper()
	if out, err := l.shell(script).CombinedOutput(); err != nil {
		l.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// start runs the command of the first terminal. end presses Ctrl-C, and waits for its end.
func (l *devLoop) start() (end func()) {
	l.Helper()
	cmd := l.shell("exec " + l.next("start"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	return func() {
		cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || l.Failed() {
			l.Errorf("%s: %v\n%s", cmd, err, &out)
		}
	}
}

// answers runs a script, and its last line again until its answer is as expected.
func (l *devLoop) answers(want, script string) {
	l.Helper()
	lines := strings.Split(strings.TrimSpace(script), "\n")
	l.must(strings.Join(lines[:len(lines)-1], "\n"))
	var out []byte
	if !scriptcmd.Poll(func() bool {
		out, _ = l.shell(lines[len(lines)-1]).Output()
		return strings.TrimSpace(string(out)) == want
	}) {
		l.Errorf("the answer is %q, not %q", out, want)
	}
}
