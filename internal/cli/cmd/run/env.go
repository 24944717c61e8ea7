package run

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/report"
)

// setEnv sets the variables of the files, then the variables of -e.
func (o *options) setEnv(_ *corev1.Pod, c *corev1.Container) error {
	for _, file := range o.files {
		lines, err := readEnvFile(file)
		if err != nil {
			return err
		}
		for _, line := range lines {
			o.setVariable(c, line)
		}
	}
	for _, word := range o.variables {
		if word == "" || word[0] == '=' {
			return usageErrorf("--env: %q has no name", word)
		}
		o.setVariable(c, word)
	}
	return nil
}

// setVariable sets NAME=VALUE; NAME alone takes its value from podrun's environment, if it is there.
func (o *options) setVariable(c *corev1.Container, word string) {
	name, value, whole := strings.Cut(word, "=")
	if !whole {
		if value = o.env.Getenv(name); value == "" {
			return
		}
	}
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: literal(value)})
}

// maxEnvFile is the largest size of a file of variables. A document of a manifest has the same limit.
const maxEnvFile = 1 << 20

// readEnvFile reads a file of variables in docker's format (docker/cli: pkg/kvfile): NAME=VALUE or NAME on
// each line, comments begin with #, and values are taken as they are, with quotes and spaces.
func readEnvFile(file string) (list []string, err error) {
	opened, err := cmdutil.OpenInput(file)
	if err != nil {
		return nil, report.New(report.Usage, "", "read --env-file: %w", err)
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, report.New(report.Usage, "", "read --env-file: %w", err)
	case len(text) > maxEnvFile:
		return nil, usageErrorf("--env-file %s has more than %d MiB", file, maxEnvFile>>20)
	}
	number := 0
	for line := range strings.Lines(string(bytes.TrimPrefix(text, []byte("\uFEFF")))) {
		number++
		line = strings.TrimLeftFunc(strings.TrimRight(line, "\r\n"), unicode.IsSpace)
		name, _, _ := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
			continue
		case !utf8.ValidString(line):
			return nil, usageErrorf("--env-file %s, line %d: it is not UTF-8", file, number)
		case name == "" || strings.ContainsFunc(name, unicode.IsSpace):
			return nil, usageErrorf("--env-file %s, line %d: %q is not the name of a variable", file, number, name)
		}
		list = append(list, line)
	}
	return list, nil
}
