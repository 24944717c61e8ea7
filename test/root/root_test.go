// Package root runs the built binary as root, in namespaces that isolate it from the machine.
package root

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// namespaces returns an error unless the test runs as root and may make these namespaces.
func namespaces() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can run podrun as root")
	}
	return exec.Command("unshare", "-m", "-n", "-i", "-u", "-p", "--fork", "true").Run()
}

// run runs a script as root in namespaces of its own, with the root file system of the example image, and returns its
// output. env returns what its environment has besides, for its directory.
func run(t *testing.T, script string, env func(dir string) []string) string {
	t.Helper()
	testenv.NeedVM(t, namespaces)
	dir := t.TempDir()
	rootfs := filepath.Join(dir, "rootfs.tar")
	if out, err := exec.Command("../../scripts/example-rootfs", rootfs).CombinedOutput(); err != nil {
		t.Fatalf("make the root file system: %v\n%s", err, out)
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/bash", "-eu", script)
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ROOTFS=" + rootfs, "HOME=" + dir}, env(dir)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID}
	output, err := os.Create(filepath.Join(dir, "output")) // a pipe would stay open in the pod's processes
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	failed := cmd.Run()
	text, err := os.ReadFile(output.Name())
	if err != nil || failed != nil {
		t.Fatalf("%v, %v\n%s", failed, err, text)
	}
	return string(text)
}

// TestRootWithoutCgroups: if root cannot make cgroups, as in a container, only mount flags and the
// lack of CAP_MKNOD protect the host's devices from containers. A container that requests the
// capability does not get it, with a warning; existing device files are inert.
func TestRootWithoutCgroups(t *testing.T) {
	got := run(t, "testdata/without-cgroups.sh", func(dir string) []string {
		return []string{"XDG_DATA_HOME=" + dir + "/data", "XDG_RUNTIME_DIR=" + dir + "/run"}
	})
	for _, line := range []string{"plain: end", "asking: end", "there is /dev/evil", "there is /memory/evil", "warning: container asking does not get CAP_MKNOD: ", "warning: container asking does not get CAP_SYS_PTRACE: "} {
		if !strings.Contains(got, line) {
			t.Errorf("it lacks %q", line)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "read ") || strings.Contains(line, ": made ") {
			t.Error("a device of the host's: ", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestMender: Debian's Mender client installs, refuses and rolls back sets by the update module of examples/mender, for
// root and for an ordinary user.
func TestMender(t *testing.T) {
	testenv.NeedVM(t, namespaces)
	mender, err := filepath.Abs("../../bin/mender")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../scripts/unpack", mender, runtime.GOARCH+"/bookworm", "mender-client", "mender-artifact").CombinedOutput(); err != nil {
		t.Fatalf("fetch Mender's client: %v\n%s", err, out)
	}
	run(t, "testdata/mender.sh", func(string) []string {
		return []string{"MENDER=" + mender + "/usr/bin", "PODRUN_USER=" + os.Getenv("PODRUN_TEST_USER")}
	})
}
