package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"golang.org/x/sys/unix"
)

// Limits of a project. A document of a manifest has at most maxFile, too.
const (
	maxFile  = 1 << 20
	maxTotal = 64 << 20 // of all files and all values of variables together
	maxFiles = 1000     // that are included or extended
	maxPods  = 1000
	maxPorts = 10000
)

// errTotal is the error of a project that takes too much memory.
var errTotal = fmt.Errorf("the files of the project and the values of its variables have more than %d MiB", maxTotal>>20)

// reader reads the files that a project names, within the limits.
type reader struct {
	root  string // under a policy the project's directory, with links resolved: no other files are read
	total int
}

// read returns the text of a regular file.
func (r *reader) read(name string) ([]byte, error) {
	if name == os.DevNull {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO without a writer must not block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", shown(name))
	}
	if err := r.checkInside(f, name); err != nil {
		return nil, err
	}
	return r.readAll(f, name)
}

// readAll reads a file up to the limits.
func (r *reader) readAll(in io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d MiB", shown(name), maxFile>>20)
	}
	if r.total += len(text); r.total > maxTotal {
		return nil, errTotal
	}
	return text, nil
}

// checkInside refuses a file outside the project's directory, under a policy.
func (r *reader) checkInside(f *os.File, name string) error {
	if r.root == "" {
		return nil
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(path, strings.TrimSuffix(r.root, "/")+"/") {
		return fmt.Errorf("%s is outside the project's directory %s: under a policy, and in an artifact, a compose file has only files of its directory", shown(name), r.root)
	}
	return nil
}

// readEnv adds the variables of an env file to vars. lookup has precedence over them.
func (r *reader) readEnv(name, format string, vars map[string]string, lookup dotenv.LookupFn) error {
	text, err := r.read(name)
	if err != nil {
		return err
	}
	dotenv.RegisterFormat("raw", parseRaw)
	err = dotenv.ParseWithFormat(bytes.NewReader(text), name, vars, func(key string) (string, bool) {
		value, ok := lookup(key)
		if !ok {
			value, ok = vars[key]
		}
		if r.total += len(value); r.total > maxTotal { // a value may contain another one many times
			return "", true
		}
		return value, ok
	}, format)
	if r.total > maxTotal {
		return errTotal
	}
	return err
}

// confine makes the reader refuse files outside a directory.
func (r *reader) confine(dir string) (err error) {
	if dir, err = filepath.Abs(dir); err == nil {
		r.root, err = filepath.EvalSymlinks(dir)
	}
	return err
}

// policyVariables are the variables of the environment that a compose file has under a policy.
const policyVariables = "COMPOSE_"

// resolveFiles reads the env files and label files of the services, which the library would read without limits.
func (c *converter) resolveFiles() error {
	before := len(c.problems)
	for _, name := range c.project.ServiceNames() {
		s := c.project.Services[name]
		keyPath := []string{"services", name}
		vars := s.Environment.Resolve(c.project.Environment.Resolve).ToMapping()
		for _, file := range s.EnvFiles {
			err := c.reader.readEnv(file.Path, file.Format, vars, func(key string) (string, bool) {
				if value, ok := c.project.Environment.Resolve(key); ok {
					return value, true
				}
				if value := s.Environment[key]; value != nil {
					return *value, true
				}
				return "", false
			})
			if err != nil && (bool(file.Required) || !errors.Is(err, os.ErrNotExist)) {
				c.refuse(append(keyPath, "env_file"), "cannot be read: %v", err)
			}
		}
		labels := map[string]string{}
		for _, file := range s.LabelFiles {
			if err := c.reader.readEnv(file, "", labels, func(string) (string, bool) { return "", false }); err != nil {
				c.refuse(append(keyPath, "label_file"), "cannot be read: %v", err)
			}
		}
		for key, value := range s.Environment {
			if value == nil && c.withheld(key) {
				c.refuse(append(keyPath, "environment"), "%s", withheldText(key))
			}
		}
	}
	if len(c.problems) > before {
		return nil
	}
	project, err := c.project.WithServicesEnvironmentResolved(false)
	if err == nil {
		c.project, err = project.WithServicesLabelsResolved(false)
	}
	return err
}

// withheld reports whether a policy keeps a variable of the user from the compose file.
func (c *converter) withheld(name string) bool {
	_, set := os.LookupEnv(name)
	_, given := c.environment[name]
	return c.reader.root != "" && set && !given
}

func withheldText(name string) string {
	return fmt.Sprintf("the variable %s is not used: under a policy, and in an artifact, a compose file has only variables of env files. Set it in .env", name)
}

// checkSize refuses a project with too many pods or ports.
func (c *converter) checkSize() bool {
	pods, ports := 0, 0
	for _, name := range c.project.ServiceNames() {
		s := c.project.Services[name]
		n := s.GetScale()
		if n < 0 || n > maxPods || pods+n > maxPods {
			c.refuse([]string{"services", name, "scale"}, "is refused: a project has at most %d pods", maxPods)
			return false
		}
		pods += n
		if ports += len(s.Ports) * n; ports > maxPorts {
			c.refuse([]string{"services", name, "ports"}, "is refused: a project has at most %d ports", maxPorts)
			return false
		}
	}
	return true
}

// limitedWriter fails when the manifest becomes too large.
type limitedWriter struct{ bytes.Buffer }

// Write adds a part of the manifest.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.Len()+len(p) > maxTotal {
		return 0, fmt.Errorf("the manifest has more than %d MiB", maxTotal>>20)
	}
	return w.Buffer.Write(p)
}

// parseRaw reads an env file of the format raw as docker does (github.com/docker/cli/pkg/kvfile): nothing in a value is
// special.
func parseRaw(in io.Reader, name string, vars map[string]string, lookup func(key string) (string, bool)) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\uFEFF")) {
		line = strings.TrimLeftFunc(strings.TrimRight(line, "\r\n"), unicode.IsSpace)
		key, value, set := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case key == "" || strings.ContainsFunc(key, unicode.IsSpace):
			return fmt.Errorf("%s: %q is not a variable: write NAME=VALUE", shown(name), line)
		case !set:
			if value, set = lookup(key); !set {
				continue
			}
		}
		vars[key] = value
	}
	return nil
}
