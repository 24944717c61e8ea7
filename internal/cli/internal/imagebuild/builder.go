package imagebuild

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
)

// builder is a program that builds images.
type builder struct {
	name     string
	path     string
	commands func(b api.Build, archive string) [][]string // build the image, and write it to an archive
}

// builders are the known programs, the preferred first.
func builders() []builder {
	return []builder{
		{name: "buildah", commands: func(b api.Build, archive string) [][]string {
			return [][]string{buildCommand(b), {"push", b.Image, "docker-archive:" + archive + ":" + b.Image}}
		}},
		{name: "buildctl", commands: func(b api.Build, archive string) [][]string { return [][]string{buildctlCommand(b, archive)} }},
		{name: "docker", commands: func(b api.Build, archive string) [][]string {
			return [][]string{buildCommand(b), {"save", "-o", archive, b.Image}}
		}},
		{name: "podman", commands: func(b api.Build, archive string) [][]string {
			return [][]string{buildCommand(b), {"save", "--format", "docker-archive", "-o", archive, b.Image}}
		}},
	}
}

// find returns the builder that the user has named, by a name or a path, or else the first that is in $PATH.
func find(named string) (builder, error) {
	var names []string
	for _, b := range builders() {
		names = append(names, b.name)
		if named != "" && filepath.Base(named) != b.name {
			continue
		}
		word := b.name
		if named != "" {
			word = named
		}
		path, err := exec.LookPath(word)
		if err == nil {
			b.path = path
			return b, nil
		}
		if named != "" {
			return builder{}, report.New(report.Usage, "", "cannot find the builder: %w", err)
		}
	}
	if named != "" {
		return builder{}, report.New(report.Usage, "", "--builder cannot be %q: use %s, or the path of one", named, strings.Join(names, ", "))
	}
	return builder{}, report.New(report.Host, "apt install buildah", "podrun builds no images itself, and none of %s is in PATH", strings.Join(names, ", "))
}

// buildCommand returns the command that buildah, docker and podman have in common.
func buildCommand(b api.Build) []string {
	words := []string{"build", "-t", b.Image}
	if b.Dockerfile != "" {
		words = append(words, "-f", dockerfile(b))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		words = append(words, "--build-arg", name+"="+b.Args[name])
	}
	for _, name := range slices.Sorted(maps.Keys(b.Labels)) {
		words = append(words, "--label", name+"="+b.Labels[name])
	}
	for _, host := range b.ExtraHosts {
		words = append(words, "--add-host", host)
	}
	if b.Target != "" {
		words = append(words, "--target", b.Target)
	}
	if b.Network != "" {
		words = append(words, "--network", b.Network)
	}
	if b.ShmSize > 0 {
		words = append(words, "--shm-size", strconv.FormatInt(b.ShmSize, 10))
	}
	if b.NoCache {
		words = append(words, "--no-cache")
	}
	if b.Pull {
		words = append(words, "--pull")
	}
	return append(words, b.Context)
}

// dockerfile returns the path of the Dockerfile; of a context that only the builder reads, the path in it.
func dockerfile(b api.Build) string {
	if b.IsLocal() && !filepath.IsAbs(b.Dockerfile) {
		return filepath.Join(b.Context, b.Dockerfile)
	}
	return b.Dockerfile
}

// buildctlCommand returns the command of BuildKit's client.
func buildctlCommand(b api.Build, archive string) []string {
	words := []string{"build", "--frontend", "dockerfile.v0", "--output", "type=docker,name=" + b.Image + ",dest=" + archive}
	opt := func(key, value string) {
		if value != "" {
			words = append(words, "--opt", key+"="+value)
		}
	}
	b.Dockerfile = cmp.Or(b.Dockerfile, "Dockerfile")
	file := dockerfile(b)
	if b.IsLocal() {
		words = append(words, "--local", "context="+b.Context, "--local", "dockerfile="+filepath.Dir(file))
		opt("filename", filepath.Base(file))
	} else {
		opt("context", b.Context)
		opt("filename", file)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		words = append(words, "--opt", "build-arg:"+name+"="+b.Args[name])
	}
	for _, name := range slices.Sorted(maps.Keys(b.Labels)) {
		words = append(words, "--opt", "label:"+name+"="+b.Labels[name])
	}
	var hosts []string
	for _, host := range b.ExtraHosts {
		hosts = append(hosts, strings.Replace(host, ":", "=", 1))
	}
	opt("add-hosts", strings.Join(hosts, ","))
	opt("target", b.Target)
	opt("force-network-mode", b.Network)
	if b.ShmSize > 0 {
		opt("shm-size", strconv.FormatInt(b.ShmSize, 10))
	}
	if b.Pull {
		opt("image-resolve-mode", "pull")
	}
	if b.NoCache {
		words = append(words, "--no-cache")
	}
	return words
}

// stopTime is how long a builder may take to end after an interrupt.
const stopTime = 10 * time.Second

// run runs a command of a builder, whose output the user gets.
func run(ctx context.Context, env *cmdutil.Env, with builder, words []string) error {
	cmd := exec.CommandContext(ctx, with.path, words...)
	cmd.Stdout, cmd.Stderr, cmd.Env = env.ErrOut, env.ErrOut, os.Environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", with.name, words[0], err)
	}
	return nil
}
