package cdi

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func describe(t *testing.T, dir, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

const toys = `cdiVersion: "0.7.0"
kind: toys.example/ball
containerEdits:
  env: [BALLS=many]
  additionalGids: [44]
devices:
- name: red
  containerEdits:
    deviceNodes: [{path: /dev/red, hostPath: /dev/zero}]
    mounts: [{hostPath: /etc/hostname, containerPath: /red, options: [ro, nosuid]}]
    hooks: [{hookName: createContainer, path: /bin/true, args: [true, x], env: [A=b], timeout: 3}]
- name: blue
  containerEdits: {deviceNodes: [{path: /dev/null}], env: [BALLS=blue]}
- name: file
  containerEdits: {deviceNodes: [{path: /etc/hostname}]}
- name: gone
  containerEdits: {deviceNodes: [{path: /dev/there-is-no-such-device}]}
- name: wire
  containerEdits: {env: [A=b], mounts: [{hostPath: tmpfs, containerPath: /t, type: tmpfs}]}
`

// Find returns a device's edits by its name and the edits common to its devices once. A later
// directory overrides an earlier one.
func TestFind(t *testing.T) {
	dir := describe(t, t.TempDir(), toys)
	got, err := Find([]string{dir}, []string{"toys.example/ball=red", "toys.example/ball=blue"})
	want := &Edits{
		Env: []string{"BALLS=many", "BALLS=blue"}, Groups: []uint32{44},
		Devices: []Device{{Host: "/dev/zero", Path: "/dev/red"}, {Host: "/dev/null", Path: "/dev/null"}},
		Mounts:  []Mount{{Host: "/etc/hostname", Path: "/red", Options: []string{"ro", "nosuid"}}},
		Hooks:   []Hook{{Name: "createContainer", Path: "/bin/true", Args: []string{"true", "x"}, Env: []string{"A=b"}, Timeout: 3}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	own := describe(t, t.TempDir(), `{cdiVersion: "0.6.0", kind: toys.example/ball, devices: [{name: red, containerEdits: {env: [OWN=1]}}]}`)
	got, err = Find([]string{dir, own}, []string{"toys.example/ball=red"})
	if err != nil || !reflect.DeepEqual(got, &Edits{Env: []string{"OWN=1"}}) {
		t.Errorf("a later directory: %v, %+v", err, got)
	}
}

// The error names a missing device and an unsupported edit.
func TestFindRefuses(t *testing.T) {
	dir := describe(t, t.TempDir(), toys)
	bad := describe(t, t.TempDir(), "kind: toys.example/kite\ndevices: [")
	net := describe(t, t.TempDir(), `{cdiVersion: "1.1.0", kind: n.example/n, devices: [{name: a, containerEdits: {netDevices: [{hostInterfaceName: eth7, name: eth7}]}}]}`)
	for name, want := range map[string]string{
		"toys.example/ball=green": "no file describes the device toys.example/ball=green",
		"toys.example/kite=a":     filepath.Join(bad, "spec.yaml"),
		"toys.example/ball=file":  "/etc/hostname is not a device",
		"toys.example/ball=gone":  "no such file or directory",
		"toys.example/ball=wire":  "a mount of type tmpfs",
		"n.example/n=a":           "which require root",
	} {
		_, err := Find([]string{dir, bad, net, "/nonexistent"}, []string{name})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Kinds orders devices by number. Names of the same device nodes are one unit; "all" is none.
func TestKinds(t *testing.T) {
	device := func(name string, nodes ...string) string {
		var list []string
		for _, n := range nodes {
			list = append(list, "{path: "+n+"}")
		}
		return "- {name: \"" + name + "\", containerEdits: {env: [A=b], deviceNodes: [" + strings.Join(list, ", ") + "]}}\n"
	}
	dir := describe(t, t.TempDir(), "cdiVersion: \"0.6.0\"\nkind: n.example/gpu\ndevices:\n"+
		device("10", "/dev/10")+device("9", "/dev/9", "/dev/c")+device("GPU-1f", "/dev/c", "/dev/9")+device("9:2", "/dev/9", "/dev/2")+device("all", "/dev/9", "/dev/10", "/dev/c"))
	only := describe(t, t.TempDir(), "cdiVersion: \"0.6.0\"\nkind: w.example/gpu\ndevices:\n"+device("all", "/dev/dxg"))
	bad := describe(t, t.TempDir(), "kind: toys.example/kite\ndevices: [")
	got, err := Kinds([]string{dir, only, bad})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(bad, "spec.yaml")) {
		t.Errorf("error: %v", err)
	}
	if len(got) != 2 || got[0].Name != "n.example/gpu" || got[1].Name != "w.example/gpu" {
		t.Fatalf("%+v", got)
	}
	k := got[0]
	if devices, units := strings.Join(k.Devices, " "), strings.Join(k.Units, " "); devices != "9 9:2 10 GPU-1f all" || units != "9 9:2 10" {
		t.Errorf("devices %s, units %s", devices, units)
	}
	if k.Unit("GPU-1f") != "9" || k.Unit("all") != "" || k.Unit("x") != "" || !reflect.DeepEqual(k.Files, []string{filepath.Join(dir, "spec.yaml")}) {
		t.Errorf("%+v", k)
	}
	if !reflect.DeepEqual(got[1].Units, []string{"all"}) {
		t.Errorf("only all: %+v", got[1])
	}
}
