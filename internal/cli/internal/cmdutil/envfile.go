package cmdutil

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podrun/podrun/internal/report"
)

// maxEnvFile is the largest size of a file of variables. A document of a manifest has the same limit.
const maxEnvFile = 1 << 20

// ReadEnvFile reads a file of variables in docker's format (docker/cli: pkg/kvfile): NAME=VALUE or NAME on
// each line, comments begin with #, and values are taken as they are, with quotes and spaces.
func ReadEnvFile(file string) (list []string, err error) {
	opened, err := OpenInput(file)
	if err != nil {
		return nil, report.New(report.Usage, "", "read --env-file: %w", err)
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, report.New(report.Usage, "", "read --env-file: %w", err)
	case len(text) > maxEnvFile:
		return nil, report.New(report.Usage, "", "--env-file %s has more than %d MiB", file, maxEnvFile>>20)
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
			return nil, report.New(report.Usage, "", "--env-file %s, line %d: it is not UTF-8", file, number)
		case name == "" || strings.ContainsFunc(name, unicode.IsSpace):
			return nil, report.New(report.Usage, "", "--env-file %s, line %d: %q is not the name of a variable", file, number, name)
		}
		list = append(list, line)
	}
	return list, nil
}
