// Package root runs the built binary as root, in namespaces that isolate it from the machine.
package root

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// TestRootWithoutCgroups: if root cannot make cgroups, as in a container, only mount flags and the
// lack of CAP_MKNOD protect the host's devices from containers. A container that requests the
// capability does not get it, with a warning; existing device files are inert.
func TestRootWithoutCgroups(t *testing.T) {
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
	cmd := exec.Command("/bin/bash", "-eu", "testdata/without-cgroups.sh")
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ROOTFS=" + rootfs, "HOME=" + dir, "XDG_DATA_HOME=" + dir + "/data", "XDG_RUNTIME_DIR=" + dir + "/run"}
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
	got := string(text)
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
