package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The given podman is taken, otherwise the newest; 5.10 is newer than 5.8.
func TestFindPodman(t *testing.T) {
	var dirs []string
	for _, v := range []string{"4.3.1", "5.10.0", "5.8.2", "5.10.0-dev", ""} {
		dir := t.TempDir()
		script := "#!/bin/sh\necho podman version " + v + "\n"
		if v == "" {
			script = "#!/bin/sh\nexit 1\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	path := func(i int) string { return filepath.Join(dirs[i], "podman") }
	if got, err := findPodman("", append([]string{t.TempDir()}, dirs...)); err != nil || got != path(1) {
		t.Errorf("newest: %q, %v, want %q", got, err, path(1))
	}
	if got, err := findPodman(path(0), dirs); err != nil || got != path(0) {
		t.Errorf("given: %q, %v, want %q", got, err, path(0))
	}
	if _, err := findPodman(path(4), dirs); err == nil {
		t.Error("a given podman that does not run is no error")
	}
	if _, err := findPodman("", []string{t.TempDir()}); err == nil {
		t.Error("no podman is no error")
	}
}

// A given runtime is the only one that is tried, with pasta first; the page has its name, not its path.
func TestPodmanVariants(t *testing.T) {
	network, given, cgroupfs := []string{"--network", "pasta"}, []string{"--runtime", "/x/crun"}, []string{"--runtime", "/x/crun", "--cgroup-manager", "cgroupfs"}
	list := podmanVariants("/x/crun")
	if want := []podmanFlags{{given, network}, {given, nil}, {cgroupfs, network}, {cgroupfs, nil}}; !reflect.DeepEqual(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
	if got := list[0].String(); got != "--runtime crun --network pasta" {
		t.Errorf("flags %q", got)
	}
	r := report{PodmanVersion: "podman version 5.8.2", Podman: "--runtime crun", RuntimeVersion: "crun version 1.27.1"}
	if got, want := r.podman(), "5.8.2 --runtime crun (crun version 1.27.1)"; got != want {
		t.Errorf("podman() = %q, want %q", got, want)
	}
}
