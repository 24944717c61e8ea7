package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// findPodman returns the podman to compare with: the given path, or the newest one in directories.
// Of equal versions the first one counts.
func findPodman(given string, directories []string) (string, error) {
	if given != "" {
		_, err := podmanVersion(given)
		return given, err
	}
	var newest []int
	best := ""
	var failed error
	for _, dir := range directories {
		path := filepath.Join(dir, "podman")
		if _, err := exec.LookPath(path); err != nil {
			continue
		}
		v, err := podmanVersion(path)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if slices.Compare(v, newest) > 0 {
			newest, best = v, path
		}
	}
	if best == "" {
		return "", errors.Join(errors.New("there is no podman: name one with PODMAN=/path/podman"), failed)
	}
	return best, nil
}

// podmanDirectories returns the directories of PATH, and those below /usr/local.
func podmanDirectories(path string) []string {
	below, _ := filepath.Glob("/usr/local/*/bin")
	return append(append(filepath.SplitList(path), "/usr/local/bin", "/usr/local/sbin"), below...)
}

// helperDirectories are where podman looks for its helper programs.
var helperDirectories = []string{"/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman", "/usr/bin"}

// helperPrograms are the programs of a pod with podman, apart from podman and its runtime.
var helperPrograms = []string{"conmon", "catatonit", "netavark", "pasta", "pasta.avx2", "passt", "passt.avx2"}

// versionNumber is the number in "podman version 4.3.1".
var versionNumber = regexp.MustCompile(`\d+(\.\d+)*`)

// podmanVersion returns the parts of a podman's version.
func podmanVersion(path string) (parts []int, err error) {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("find the version of %s: %w", path, err)
	}
	number := versionNumber.Find(out)
	if number == nil {
		return nil, fmt.Errorf("find the version of %s: there is none in %q", path, out)
	}
	for part := range strings.SplitSeq(string(number), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("find the version of %s: %w", path, err)
		}
		parts = append(parts, n)
	}
	return parts, nil
}

// podmanFlags are flags with which podman may work on this host.
type podmanFlags struct {
	global []string // of every command
	play   []string // of kube play
}

// podmanVariants returns the flags to try, the preferred ones first. pasta starts faster than
// podman's default network, but older versions do not have it. crun refuses mixed cgroup hierarchies
// that it sees, runc does not.
func podmanVariants(runtime string) (list []podmanFlags) {
	globals := [][]string{nil, {"--runtime", "runc"}, {"--runtime", "runc", "--cgroup-manager", "cgroupfs"}}
	if runtime != "" {
		globals = [][]string{{"--runtime", runtime}, {"--runtime", runtime, "--cgroup-manager", "cgroupfs"}}
	}
	for _, global := range globals {
		for _, play := range [][]string{{"--network", "pasta"}, nil} {
			list = append(list, podmanFlags{global, play})
		}
	}
	return list
}

// runtimeVersion returns the first line of the version of podman's runtime: "crun version 1.8.1".
func (e *podman) runtimeVersion() string {
	out, err := e.run("info", "--format", "{{.Host.OCIRuntime.Version}}").Output()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}

// String returns the flags with the names of programs instead of their paths.
func (f podmanFlags) String() string {
	var names []string
	for _, word := range slices.Concat(f.global, f.play) {
		names = append(names, filepath.Base(word))
	}
	return strings.Join(names, " ")
}
