package object

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/report"
)

// maxValue is more than an object may hold (1 MiB): a larger value is not read to its end.
const maxValue = 2 << 20

// putText adds a value to a ConfigMap's data or, if it is not text, to its binaryData.
func putText(data *map[string]string, binary *map[string][]byte, key string, value []byte) {
	if *data == nil {
		*data, *binary = map[string]string{}, map[string][]byte{}
	}
	if utf8.Valid(value) {
		(*data)[key] = string(value)
	} else {
		(*binary)[key] = value
	}
}

// data collects the keys and values of the options, as kubectl create does. A duplicate key is an
// error.
func (o *createOptions) data() (map[string][]byte, error) {
	data := map[string][]byte{}
	add := func(key string, value []byte) error {
		if msgs := validation.IsConfigMapKey(key); len(msgs) > 0 {
			return report.New(report.Usage, "", "%q is not a valid key name: %s", key, strings.Join(msgs, "; "))
		}
		if _, twice := data[key]; twice {
			return report.New(report.Usage, "", "the key %q is given twice", key)
		}
		data[key] = value
		return nil
	}
	var errs []error
	for _, word := range o.fromFile {
		errs = append(errs, fromFile(o.env, word, add))
	}
	for _, word := range o.fromLiteral {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" { // the word is not printed: it may be a secret
			errs = append(errs, report.New(report.Usage, "", "--from-literal requires KEY=VALUE"))
			continue
		}
		errs = append(errs, add(key, []byte(value)))
	}
	for _, file := range o.fromEnvFile {
		errs = append(errs, fromEnvFile(o.env, file, add))
	}
	return data, errors.Join(errs...)
}

// fromFile adds FILE, KEY=FILE, or all regular files of a directory.
func fromFile(env *cmdutil.Env, word string, add func(key string, value []byte) error) error {
	key, path, named := strings.Cut(word, "=")
	switch {
	case !named:
		path, key = word, filepath.Base(word)
	case key == "" || path == "" || strings.Contains(path, "="):
		return report.New(report.Usage, "", "--from-file must be FILE or KEY=FILE, not %q", word)
	}
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		value, err := readValue(env, path)
		if err != nil {
			return err
		}
		return add(key, value)
	}
	if named {
		return report.New(report.Usage, "", "--from-file: cannot give a key name for a directory path: %q", word)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("cannot list the files: %w", err)
	}
	for _, file := range files {
		if !file.Type().IsRegular() {
			continue
		}
		value, err := readValue(env, filepath.Join(path, file.Name()))
		if err == nil {
			err = add(file.Name(), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fromEnvFile adds lines of KEY=VALUE. A KEY alone takes its value from the environment (kubectl:
// pkg/cmd/util/env_file.go).
func fromEnvFile(env *cmdutil.Env, file string, add func(key string, value []byte) error) error {
	text, err := readValue(env, file)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return report.New(report.Usage, "", "%s is not valid UTF-8", file)
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		n++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t\v\f")
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			value = env.Getenv(key)
		}
		if msgs := validation.IsEnvVarName(key); len(msgs) > 0 { // not printed: it may be a secret
			return report.New(report.Usage, "", "%s, line %d: the key before = is not a valid key name: %s", file, n, strings.Join(msgs, "; "))
		}
		if err := add(key, []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// readValue reads a file; /dev/stdin and - are standard input.
func readValue(env *cmdutil.Env, path string) ([]byte, error) {
	in := env.In
	if path != "-" && path != "/dev/stdin" {
		file, err := cmdutil.OpenInput(path)
		if err != nil {
			return nil, report.New(report.Usage, "", "cannot read the value: %w", err)
		}
		defer file.Close()
		in = file
	}
	value, err := io.ReadAll(io.LimitReader(in, maxValue))
	if err != nil {
		return nil, report.New(report.Usage, "", "cannot read the value: %w", err)
	}
	return value, nil
}
