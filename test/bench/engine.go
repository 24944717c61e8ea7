package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// engine is one side of the comparison.
type engine interface {
	name() string
	prepare(rootfs string) error // import the image, try one pod
	up(pod, file string) *exec.Cmd
	down(pod, file string) *exec.Cmd
	exec(pod string, args ...string) *exec.Cmd
	logs(pod string) *exec.Cmd
	ps() *exec.Cmd
	help() *exec.Cmd
	version() *exec.Cmd // its fastest command
	close()             // leaves nothing running
}

// timed runs a command and returns how long it took; the error of a failed one contains its output.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	// A file, not a pipe: background processes may keep it open.
	output, err := os.CreateTemp("", "podrun-bench-output-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(output.Name())
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	start := time.Now()
	err = cmd.Start()
	if err == nil {
		killer := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
		err = cmd.Wait()
		killer.Stop()
	}
	took := time.Since(start)
	if err != nil {
		text, _ := os.ReadFile(output.Name())
		return took, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(text))
	}
	return took, nil
}

type podrun struct {
	user   *account
	dir    string
	binary string
	env    []string
}

func newPodrun(user *account, work, binary string) *podrun {
	dir := filepath.Join(work, "podrun")
	return &podrun{user, dir, binary, user.directories(dir)}
}

func (e *podrun) runtime() string { return e.user.runtime(e.dir) }

func (e *podrun) name() string { return "podrun" }

func (e *podrun) run(args ...string) *exec.Cmd { return e.user.command(e.env, e.binary, args...) }

func (e *podrun) prepare(rootfs string) error {
	_, err := timed(e.run("image", "import", rootfs, image))
	return err
}

func (e *podrun) up(_, file string) *exec.Cmd  { return e.run("up", "-d", file) }
func (e *podrun) down(pod, _ string) *exec.Cmd { return e.run("down", pod) }

func (e *podrun) exec(pod string, args ...string) *exec.Cmd {
	return e.run(append([]string{"exec", pod, "-c", "main", "--"}, args...)...)
}

func (e *podrun) logs(pod string) *exec.Cmd { return e.run("logs", pod, "-c", "main") }
func (e *podrun) ps() *exec.Cmd             { return e.run("ps") }
func (e *podrun) help() *exec.Cmd           { return e.run("--help") }
func (e *podrun) version() *exec.Cmd        { return e.run("--version") }

func (e *podrun) close() {
	for _, s := range append(slices.Clip(shapes), manyContainers) {
		e.run("down", s.name).Run() // fails if it is down already
	}
}

type podman struct {
	user  *account
	work  string
	env   []string
	flags podmanFlags // required on this host

	binary, runtime string // runtime "": podman's own choice, or runc
	helpers         string // a directory where its helper programs are looked for first; "": its own choice
}

func newPodman(user *account, work, binary, runtime string) *podman {
	dir := filepath.Join(work, "podman")
	env := append(user.directories(dir), "CONTAINERS_STORAGE_CONF="+filepath.Join(dir, "storage.conf"))
	return &podman{user: user, work: work, env: env, binary: binary, runtime: runtime}
}

func (e *podman) name() string { return "podman" }

func (e *podman) run(args ...string) *exec.Cmd {
	return e.user.command(e.env, e.binary, append(slices.Clip(e.flags.global), args...)...)
}

// prepare configures podman with its fastest storage, overlay, and finds what it needs on this
// host.
func (e *podman) prepare(rootfs string) error {
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		return fmt.Errorf("podman's default network needs it: %w", err)
	} else {
		f.Close()
	}
	dir := filepath.Join(e.work, "podman")
	conf := fmt.Sprintf("[storage]\ndriver = \"overlay\"\nrunroot = %q\ngraphroot = %q\n", e.user.runtime(dir)+"/storage", dir+"/data/storage")
	if err := os.WriteFile(filepath.Join(dir, "storage.conf"), []byte(conf), 0o644); err != nil {
		return err
	}
	if err := e.configure(dir); err != nil {
		return err
	}
	if _, err := timed(e.run("import", rootfs, image)); err != nil {
		return err
	}
	var tried []error
	for _, flags := range podmanVariants(e.runtime) {
		e.flags = flags
		pod, file := shapes[0].name, filepath.Join(e.work, "pods", shapes[0].name+".yaml")
		_, err := timed(e.up(pod, file))
		_, derr := timed(e.down(pod, file))
		if err = errors.Join(err, derr); err == nil {
			return nil
		}
		tried = append(tried, err)
		timed(e.run("pod", "rm", "--force", "--all")) // leftovers of the attempt
	}
	return errors.Join(tried...)
}

// configure makes podman start containers without a keyring of their own: the kernel lets a user have 200,
// and removes keyrings of ended containers later.
func (e *podman) configure(dir string) error {
	conf := filepath.Join(dir, "config/containers")
	if err := os.Mkdir(conf, 0o755); err != nil {
		return err
	}
	text := "[containers]\nkeyring = false\n"
	if e.helpers != "" {
		text += fmt.Sprintf("[engine]\nconmon_path = [%q]\nhelper_binaries_dir = [%q", filepath.Join(e.helpers, "conmon"), e.helpers)
		for _, dir := range helperDirectories {
			text += fmt.Sprintf(", %q", dir)
		}
		text += "]\n"
	}
	return os.WriteFile(filepath.Join(conf, "containers.conf"), []byte(text), 0o644)
}

func (e *podman) up(_, file string) *exec.Cmd {
	play := append([]string{"kube", "play", "--log-driver", "k8s-file"}, e.flags.play...) // a file, as podrun's
	return e.run(append(play, file)...)
}
func (e *podman) down(_, file string) *exec.Cmd { return e.run("kube", "down", file) }

func (e *podman) exec(pod string, args ...string) *exec.Cmd {
	return e.run(append([]string{"exec", pod + "-main"}, args...)...)
}

func (e *podman) logs(pod string) *exec.Cmd { return e.run("logs", pod+"-main") }
func (e *podman) ps() *exec.Cmd             { return e.run("pod", "ps") }
func (e *podman) help() *exec.Cmd           { return e.run("--help") }
func (e *podman) version() *exec.Cmd        { return e.run("--version") }

func (e *podman) close() {
	e.run("pod", "rm", "--force", "--all").Run()
	// The process that keeps the user namespace between commands has no command to stop it.
	b, err := os.ReadFile(filepath.Join(e.user.runtime(filepath.Join(e.work, "podman")), "libpod/tmp/pause.pid"))
	if err != nil {
		return // podman never got that far
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		syscall.Kill(pid, syscall.SIGTERM)
	}
}

// directories returns XDG directories of an engine's own, so that it neither reads nor writes the
// user's. The runtime directory is in memory, if possible.
func (p *account) directories(dir string) []string {
	var env []string
	for _, d := range []struct{ variable, path string }{
		{"XDG_DATA_HOME", filepath.Join(dir, "data")}, {"XDG_RUNTIME_DIR", p.runtime(dir)},
		{"XDG_CONFIG_HOME", filepath.Join(dir, "config")}, {"XDG_CACHE_HOME", filepath.Join(dir, "cache")},
	} {
		if err := os.MkdirAll(d.path, 0o700); err == nil {
			os.Chown(filepath.Dir(d.path), int(p.uid), int(p.gid))
			os.Chown(d.path, int(p.uid), int(p.gid))
		}
		env = append(env, d.variable+"="+d.path)
	}
	return env
}

// runtime returns the runtime directory of the engine whose other directories are in dir.
func (p *account) runtime(dir string) string {
	if p.memory != "" {
		dir = filepath.Join(p.memory, filepath.Base(dir))
	}
	return filepath.Join(dir, "run")
}
