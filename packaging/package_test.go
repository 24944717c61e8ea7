package packaging

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/xeipuuv/gojsonschema"
)

// version is the version of the packages that the tests make: a pre-release, because each packager has its own form for it.
const version = "0.1.0-rc.1"

// arch is this machine's architecture as scripts/build spells it.
var arch = map[string]string{"arm": "armv7"}[runtime.GOARCH]

// release is the directory with a release of bin/podrun for this machine. Tests copy what they change.
var release string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if arch == "" {
		arch = runtime.GOARCH
	}
	dir, err := os.MkdirTemp("", "podrun-release-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // for the ordinary user
		panic(err)
	}
	release = dir
	for _, args := range [][]string{{"../scripts/package", "../bin/podrun", arch, dir}, {"../scripts/checksums", dir}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000", "SIGNING_KEY=")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", args, err, out)
			return 1
		}
	}
	return m.Run()
}

// output runs a program that must succeed and returns its output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// file returns the path of the only file of the release that matches.
func file(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(release, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// everywhere are files that every package contains.
var everywhere = []string{
	"/usr/bin/podrun", "/usr/lib/modules-load.d/podrun.conf", "/usr/lib/systemd/system/podrun@.service",
	"/usr/lib/systemd/system/user@.service.d/60-podrun.conf", "/usr/lib/systemd/user/podrun@.service",
	"/usr/lib/systemd/user-generators/podrun-user-generator", "/usr/lib/systemd/system-generators/podrun-system-generator",
	"/usr/share/bash-completion/completions/podrun", "/usr/share/doc/podrun/README.md", "/usr/share/doc/podrun/copyright",
	"/usr/share/fish/vendor_completions.d/podrun.fish", "/usr/share/man/man1/podrun-up.1.gz", "/usr/share/man/man1/podrun.1.gz",
}

// checkFiles checks which files lie below a directory. A nil list of more files stands for none.
func checkFiles(t *testing.T, dir string, more ...string) {
	t.Helper()
	for _, want := range append(more, everywhere...) {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Error(err)
		}
	}
	program, err := os.ReadFile(filepath.Join(dir, "/usr/bin/podrun"))
	built, berr := os.ReadFile("../bin/podrun")
	if err != nil || berr != nil || !bytes.Equal(program, built) {
		t.Errorf("the program in the package is not bin/podrun: %v, %v", err, berr)
	}
	for _, scope := range []string{"user", "system"} {
		unit, err := os.ReadFile(filepath.Join(dir, "/usr/lib/systemd", scope, "podrun@.service"))
		target := map[string]string{"user": "WantedBy=default.target", "system": "WantedBy=multi-user.target"}[scope]
		if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/podrun up %E/podrun/pods/%i.yaml\n") || !strings.Contains(string(unit), target) {
			t.Errorf("the unit of %s: %v\n%s", scope, err, unit)
		}
	}
}

// newRoot makes a root file system with nothing but a shell, and returns its files.
func newRoot(t *testing.T) (root string, files []string) {
	t.Helper()
	root = t.TempDir()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "dev", "etc/apparmor.d/abi", "proc/sys/kernel", "tmp", "var/lib", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "cp", busybox, filepath.Join(root, "bin/busybox"))
	if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o644); err != nil { // scripts write to it
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "cp", "rm", "modprobe"} {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return root, list(t, root)
}

// list returns the files and directories below a root, without the files of dpkg and rpm.
func list(t *testing.T, root string) (names []string) {
	t.Helper()
	for name := range strings.FieldsSeq(output(t, "find", root, "-path", root+"/var/lib/*", "-prune", "-o", "-print")) {
		names = append(names, strings.TrimPrefix(name, root))
	}
	slices.Sort(names)
	return names
}

// asRoot runs a program as root of a user namespace.
func asRoot(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, "unshare", append([]string{"--user", "--map-root-user", "--mount"}, args...)...)
}

func TestDeb(t *testing.T) {
	deb := file(t, "podrun_0.1.0~rc.1_*.deb")
	root, before := newRoot(t)
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// All but the package is absent: dpkg would look for ldconfig, among others.
	dpkg := func(args ...string) string {
		return asRoot(t, append([]string{"dpkg", "--root=" + root, "--force-bad-path", "--log=/dev/null"}, args...)...)
	}
	if out := dpkg("--install", deb); !strings.Contains(out, "podrun doctor") || strings.Contains(out, "apparmor") {
		t.Errorf("the script after the installation printed\n%s", out)
	}
	checkFiles(t, root, "/usr/share/zsh/vendor-completions/_podrun", "/usr/share/podrun/apparmor.profile")
	if _, err := os.Stat(filepath.Join(root, "etc/apparmor.d/podrun")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a profile where AppArmor restricts nothing: %v", err)
	}
	dpkg("--purge", "podrun")
	if left := list(t, root); !slices.Equal(left, before) {
		t.Errorf("after the purge: %q", left)
	}
}

// TestDebWithAppArmor: on Ubuntu the package loads a profile, and its removal unloads it.
func TestDebWithAppArmor(t *testing.T) {
	root, _ := newRoot(t)
	for name, text := range map[string]string{
		"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
		"etc/apparmor.d/abi/4.0":                                "",
		"bin/apparmor_parser":                                   "#!/bin/sh\necho \"$@\" >>/tmp/parser\n", // the real one needs Ubuntu's kernel
		"tmp/parser":                                            "",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := list(t, root)
	output(t, "dpkg-deb", "--extract", file(t, "*.deb"), root)
	output(t, "dpkg-deb", "--control", file(t, "*.deb"), filepath.Join(root, "tmp/control"))
	asRoot(t, "chroot", root, "/tmp/control/postinst", "configure")
	text, err := os.ReadFile(filepath.Join(root, "etc/apparmor.d/podrun"))
	if err != nil || !strings.Contains(string(text), "  userns,\n") {
		t.Errorf("the profile: %v\n%s", err, text)
	}
	asRoot(t, "chroot", root, "/tmp/control/postrm", "upgrade", "0.2.0")
	if _, err := os.Stat(filepath.Join(root, "etc/apparmor.d/podrun")); err != nil {
		t.Errorf("after an upgrade: %v", err)
	}
	asRoot(t, "chroot", root, "/bin/sh", "-c", "rm -rf /usr && mkdir -p /sys/kernel/security/apparmor && : >/sys/kernel/security/apparmor/profiles && /tmp/control/postrm remove && rm -rf /sys /tmp/control")
	if left := list(t, root); !slices.Equal(left, before) {
		t.Errorf("after the removal: %q", left)
	}
	calls, err := os.ReadFile(filepath.Join(root, "tmp/parser"))
	if want := "-r /etc/apparmor.d/podrun\n-R /etc/apparmor.d/podrun\n"; err != nil || string(calls) != want {
		t.Errorf("calls of apparmor_parser: %v, %q, want %q", err, calls, want)
	}
}

func TestRPM(t *testing.T) {
	packed := file(t, "podrun-0.1.0~rc.1-1.*.rpm")
	root, before := newRoot(t)
	rpm := func(args ...string) string {
		return asRoot(t, append([]string{"rpm", "--root", root, "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	rpm("--install", "--nodeps", packed)
	checkFiles(t, root, "/usr/share/zsh/site-functions/_podrun")
	if out := rpm("--query", "--all", "--queryformat", "%{NAME} %{VERSION} %{LICENSE}"); out != "podrun 0.1.0~rc.1 Apache-2.0" {
		t.Errorf("installed is %q", out)
	}
	rpm("--erase", "podrun")
	left := slices.DeleteFunc(list(t, root), func(name string) bool { // directories, which belong to other packages of Fedora
		st, err := os.Stat(filepath.Join(root, name))
		return err == nil && st.IsDir() && strings.HasPrefix(name, "/usr")
	})
	if !slices.Equal(left, before) {
		t.Errorf("after the removal: %q", left)
	}
}

// TestAPK checks the content: Debian has no apk.
func TestAPK(t *testing.T) {
	root := t.TempDir()
	output(t, "tar", "--extract", "--warning=no-unknown-keyword", "--ignore-zeros", "--file", file(t, "podrun_0.1.0_rc1_*.apk"), "--directory", root)
	checkFiles(t, root, "/usr/share/zsh/site-functions/_podrun", "/.post-install", "/.post-deinstall")
	info, err := os.ReadFile(filepath.Join(root, ".PKGINFO"))
	if err != nil || !strings.Contains(string(info), "pkgname = podrun\npkgver = 0.1.0_rc1\n") {
		t.Errorf("%v\n%s", err, info)
	}
}

// TestSBOM: the bill of materials of the built binary lists the libraries of the CLI, of each embedded program, and
// the C libraries, and follows the schema.
func TestSBOM(t *testing.T) {
	text, err := os.ReadFile(file(t, "*.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, c := range *bom.Components {
		if c.Version == "" || c.Version == "(devel)" || versions[c.Name] != "" {
			t.Errorf("%s has the versions %q and %q", c.Name, c.Version, versions[c.Name])
		}
		versions[c.Name] = c.Version
	}
	for _, name := range []string{
		"stdlib", "k8s.io/api", "github.com/godbus/dbus/v5", "github.com/opencontainers/runc", "gvisor.dev/gvisor",
		"go.podman.io/image/v5", "github.com/compose-spec/compose-go/v2", "libseccomp", "glibc", "libgcc",
	} {
		if versions[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	loader := gojsonschema.NewSchemaLoader()
	schemas := filepath.Join(strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")), "schema")
	for _, name := range []string{"spdx.schema.json", "jsf-0.82.schemax.json"} { // which the schema refers to
		if err := loader.AddSchemas(gojsonschema.NewReferenceLoader("file://" + filepath.Join(schemas, name))); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := loader.Compile(gojsonschema.NewReferenceLoader("file://" + filepath.Join(schemas, "bom-1.6.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(text))
	if err != nil || !result.Valid() {
		t.Errorf("%v, %v", err, result.Errors())
	}
}
