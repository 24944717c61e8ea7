package compose

import (
	"os"
	"os/exec"
	"testing"
)

// childVariable makes the test binary a converter, or one that takes memory without end.
const childVariable = "PODRUN_TEST_CONVERTER"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "convert":
		os.Exit(main(os.Args[1:]))
	case "memory":
		Bound(true)
		for all := [][]byte{}; ; {
			all = append(all, make([]byte, 64<<20))
		}
	}
	os.Exit(m.Run())
}

// TestConverterEndsWithItsReader: a converter that waits for its input ends when the command that started it was
// killed.
func TestConverterEndsWithItsReader(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", `{"files":["-"]}`)
	cmd.Env = append(os.Environ(), childVariable+"=convert")
	if _, err := cmd.StdinPipe(); err != nil { // open until the converter has ended
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("the converter succeeded")
	}
}

// TestConverterMemory: a converter that takes memory without end fails.
func TestConverterMemory(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"=memory", "GOTRACEBACK=none")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("it has no limit: %s", out)
	}
}
