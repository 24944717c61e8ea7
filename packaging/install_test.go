package packaging

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"aead.dev/minisign"
)

// tempDir is t.TempDir, readable for the ordinary user.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mirror returns a copy of what the installer reads.
func mirror(t *testing.T) string {
	t.Helper()
	dir := tempDir(t)
	output(t, "cp", file(t, "*.tar.gz"), filepath.Join(release, "SHA256SUMS"), dir)
	return dir
}

// home makes the home directory of the ordinary user who installs: the caller, or for root the user of scripts/test.
func home(t *testing.T) (dir string, as *syscall.Credential) {
	t.Helper()
	dir = tempDir(t)
	if os.Geteuid() != 0 {
		return dir, nil
	}
	u, err := user.Lookup(os.Getenv("PODRUN_TEST_USER"))
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// install runs the installer of a release as an ordinary user. It returns the user's files and the output.
func install(t *testing.T, args ...string) (files, out string, err error) {
	t.Helper()
	return runInstaller(t, filepath.Join(release, "install.sh"), args...)
}

// runInstaller is install for a copy of the installer. Without network: its curl fails.
func runInstaller(t *testing.T, script string, args ...string) (files, out string, err error) {
	t.Helper()
	dir, as := home(t)
	programs := tempDir(t)
	if err := os.WriteFile(filepath.Join(programs, "curl"), []byte("#!/bin/sh\ncase $* in *://127.0.0.1*) exec /usr/bin/curl \"$@\" ;; esac\nexit 6\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{script}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + programs + ":/usr/local/bin:/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	text, err := cmd.CombinedOutput()
	return output(t, "find", dir, "-type", "f"), string(text), err
}

// newKey makes a pair of keys with the real minisign. The secret key has no password.
func newKey(t *testing.T) (secret, public string) {
	t.Helper()
	dir := tempDir(t)
	secret, public = filepath.Join(dir, "secret"), filepath.Join(dir, "public")
	output(t, "minisign", "-G", "-W", "-s", secret, "-p", public)
	return secret, public
}

// sign signs the checksums of a release as scripts/release does.
func sign(t *testing.T, dir, key string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("../scripts/checksums", dir)
	cmd.Env = append(os.Environ(), append(env, "SIGNING_KEY="+key)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInstall(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(release)))
	defer server.Close()
	secret, public := newKey(t)
	signed := mirror(t)
	if out, err := sign(t, signed, secret); err != nil {
		t.Fatal(out)
	}
	for name, args := range map[string][]string{
		"beside it": nil,
		"directory": {"--from", release},
		"mirror":    {"--from", server.URL},
		"signature": {"--from", signed, "--key", public},
	} {
		t.Run(name, func(t *testing.T) {
			files, out, err := install(t, args...)
			if err != nil {
				t.Fatal(out)
			}
			for _, want := range []string{"/.local/bin/podrun\n", "/.local/share/man/man1/podrun-up.1\n", "/.local/share/bash-completion/completions/podrun\n"} {
				if !strings.Contains(files, want) {
					t.Errorf("there is no %s", want)
				}
			}
			if !strings.HasPrefix(out, "installing podrun from ") {
				t.Errorf("it does not print from where it installs:\n%s", out)
			}
			if !strings.Contains(out, "bin is not in your PATH: export PATH=") || !strings.Contains(out, "/.local/bin/podrun doctor ") {
				t.Errorf("it printed\n%s", out)
			}
			if verified := strings.Contains(out, "Signature and comment signature verified"); verified != (name == "signature") {
				t.Errorf("a signature was verified: %v\n%s", verified, out)
			}
		})
	}
}

// TestInstallNoexec: the installer runs no program in the directory for temporary files, where that may be forbidden.
func TestInstallNoexec(t *testing.T) {
	temp, prefix := t.TempDir(), t.TempDir()
	asRoot(t, "sh", "-ec", `mount -t tmpfs -o noexec none "$1"; export TMPDIR="$1" HOME="$1"; exec sh "$2" --prefix "$3" --from "$4"`, "sh", temp, filepath.Join(release, "install.sh"), prefix, release)
	if files := output(t, "find", filepath.Join(prefix, "bin"), "-type", "f"); files != filepath.Join(prefix, "bin/podrun")+"\n" {
		t.Errorf("it installed %q", files)
	}
}

// TestInstallRefuses: a release that is not as it should be leaves no file.
func TestInstallRefuses(t *testing.T) {
	_, public := newKey(t)
	other, _ := newKey(t)
	damaged, forged, withoutArch := mirror(t), mirror(t), mirror(t)
	tarball := "podrun-" + version + "-linux-" + arch + ".tar.gz"
	if err := os.WriteFile(filepath.Join(damaged, tarball), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := sign(t, forged, other); err != nil {
		t.Fatal(out)
	}
	output(t, "sed", "-i", "/-linux-.*tar.gz/ d", filepath.Join(withoutArch, "SHA256SUMS"))
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"damaged", []string{"--from", damaged}, "the checksum of " + tarball + " is wrong"},
		{"signature of another key", []string{"--from", forged, "--key", public}, "the signature of " + forged + "/SHA256SUMS is not one of " + public},
		{"no signature", []string{"--from", release, "--key", public}, "cannot get SHA256SUMS.minisig from " + release},
		{"no architecture", []string{"--from", withoutArch}, "has no podrun for " + arch},
		{"no release", []string{"--from", "/nonexistent"}, "cannot get SHA256SUMS from /nonexistent"},
		{"unknown argument", []string{"--form", release}, "unknown argument --form"},
		{"no value", []string{"--from"}, "--from requires a value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files, out, err := install(t, tc.args...)
			if err == nil || files != "" || !strings.Contains(out, tc.want) || !strings.HasSuffix(out, "; nothing was installed\n") {
				t.Errorf("%v, files %q, it printed\n%swant %q", err, files, out, tc.want)
			}
		})
	}
}

// TestInstallOthersRelease: a download in a directory in which another user can write installs nothing of what lies
// beside it; --from does.
func TestInstallOthersRelease(t *testing.T) {
	cases := map[string]func(dir string) error{
		"directory of all":     func(dir string) error { return os.Chmod(dir, 0o777) },
		"like /tmp":            func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
		"directory of a group": func(dir string) error { return os.Chmod(dir, 0o775) },
		"file of all":          func(dir string) error { return os.Chmod(filepath.Join(dir, "SHA256SUMS"), 0o666) },
		"parent of all":        func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
		"link": func(dir string) error {
			sums := filepath.Join(dir, "SHA256SUMS")
			if err := os.Rename(sums, sums+".real"); err != nil {
				return err
			}
			return os.Symlink(sums+".real", sums)
		},
	}
	if os.Geteuid() == 0 { // only root can make such files
		cases["directory of another user"] = func(dir string) error { return os.Chown(dir, 65534, 65534) }
		cases["file of another user"] = func(dir string) error { return os.Chown(filepath.Join(dir, "SHA256SUMS"), 65534, 65534) }
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(mirror(t), "download")
			output(t, "sh", "-c", `mkdir "$1/download" && cd "$1" && mv podrun-* SHA256SUMS download && cp "$2" download`, "sh", filepath.Dir(dir), filepath.Join(release, "install.sh"))
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(dir, "install.sh")
			files, out, err := runInstaller(t, script)
			if err == nil || files != "" || !strings.Contains(out, "the release in "+dir+" is not used") || !strings.Contains(out, "cannot get SHA256SUMS from https://github.com/") {
				t.Errorf("%v, files %q, it printed\n%s", err, files, out)
			}
			if files, out, err = runInstaller(t, script, "--from", dir); err != nil || !strings.Contains(files, "/.local/bin/podrun\n") {
				t.Errorf("--from: %v, files %q, it printed\n%s", err, files, out)
			}
		})
	}
}

// TestSign: the real minisign accepts the signature, which is always the same, and a key with a password needs it.
func TestSign(t *testing.T) {
	secret, public := newKey(t)
	dir := mirror(t)
	sums := filepath.Join(dir, "SHA256SUMS")
	var signatures []string
	for range 2 {
		if out, err := sign(t, dir, secret, "VERSION="+version); err != nil {
			t.Fatal(out)
		}
		if out := output(t, "minisign", "-V", "-m", sums, "-p", public); !strings.Contains(out, "checksums of podrun "+version) {
			t.Errorf("minisign printed\n%s", out)
		}
		text, err := os.ReadFile(sums + ".minisig")
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, string(text))
	}
	if signatures[0] != signatures[1] {
		t.Errorf("two signatures differ:\n%s", strings.Join(signatures, ""))
	}
	other, key, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := minisign.EncryptKey("password", key)
	if err != nil {
		t.Fatal(err)
	}
	secret = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, encrypted, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := sign(t, dir, secret, "MINISIGN_PASSWORD="); err == nil || !strings.Contains(out, "it is encrypted: set MINISIGN_PASSWORD") {
		t.Errorf("without the password: %v\n%s", err, out)
	}
	if out, err := sign(t, dir, secret, "MINISIGN_PASSWORD=password"); err != nil {
		t.Fatal(out)
	}
	output(t, "minisign", "-V", "-m", sums, "-P", other.String())
}

// TestReleaseRefuses: scripts/release checks its input before it builds.
func TestReleaseRefuses(t *testing.T) {
	for _, tc := range []struct{ version, arch, key, want string }{
		{"", "", "", "release: VERSION is missing: make release VERSION=0.1.0\n"},
		{"v1", "", "", "release: VERSION is a semantic version without v, such as 0.1.0, 0.2.0-alpha.1, -beta.1 or -rc.1, not v1\n"},
		{"1.0.0-rc.01", "", "", "release: VERSION is a semantic version "}, // no number has leading zeros
		{"1.0.0-dev", "", "", "release: VERSION is a semantic version "},   // Alpine has no form for it
		{"1.0.0", "mips", "", "release: there is no architecture mips: use some of amd64 "},
		{"1.0.0", "amd64", "/nonexistent", "release: SIGNING_KEY: the file /nonexistent cannot be read\n"},
	} {
		cmd := exec.Command("../scripts/release", strings.Fields(tc.arch)...)
		cmd.Env = append(os.Environ(), "VERSION="+tc.version, "SIGNING_KEY="+tc.key)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), tc.want) {
			t.Errorf("%+v: %v\n%s", tc, err, out)
		}
	}
}

// TestReleaseRefusesChanges: a tree with a file that is not committed is no release.
func TestReleaseRefusesChanges(t *testing.T) {
	dir := t.TempDir()
	output(t, "git", "init", "-q", dir)
	output(t, "git", "-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-q", "--allow-empty", "-m", "empty")
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "cp", "../scripts/release", "../scripts/env.sh", filepath.Join(dir, "scripts"))
	cmd := exec.Command(filepath.Join(dir, "scripts/release"))
	cmd.Env = append(os.Environ(), "VERSION=1.0.0", "SIGNING_KEY=")
	want := "release: the tree has changes that are not committed: commit them first, git status lists them\n"
	if out, err := cmd.CombinedOutput(); err == nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
