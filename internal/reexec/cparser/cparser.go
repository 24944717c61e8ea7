// Package cparser runs parsers in C in a process of their own, with checks of every access to memory. Only tests import it.
package cparser

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Parser is a process that parses inputs. Its source includes parser.h.
type Parser struct {
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// compiled are programs by their sources: several tests of a package need the same one.
var compiled sync.Map

// compile returns a program, compiled under AddressSanitizer and UndefinedBehaviorSanitizer.
func compile(source string) ([]byte, error) {
	program, _ := compiled.LoadOrStore(source, sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "cparser")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "parser")
		out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-D_FILE_OFFSET_BITS=64", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-o", path, source).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w\n%s", source, err, out)
		}
		return os.ReadFile(path)
	}))
	return program.(func() ([]byte, error))()
}

// New compiles a source, under AddressSanitizer and UndefinedBehaviorSanitizer, and starts it. The process ends with the test.
func New(t testing.TB, source string) *Parser {
	t.Helper()
	program := filepath.Join(t.TempDir(), "parser")
	text, err := compile(source)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &Parser{}
	cmd := exec.Command(program)
	cmd.Stderr = &p.errors
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(answers)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, p.errors.String())
		}
	})
	return p
}

// Parse parses an input of a kind and returns the strings of the answer.
func (p *Parser) Parse(t testing.TB, kind byte, input []byte) []string {
	t.Helper()
	head := binary.NativeEndian.AppendUint32(nil, uint32(kind))
	head = binary.NativeEndian.AppendUint32(head, uint32(len(input)))
	if _, err := p.in.Write(append(head, input...)); err != nil {
		t.Fatal(err, p.errors.String())
	}
	var length uint32
	if err := binary.Read(p.out, binary.NativeEndian, &length); err != nil {
		t.Fatalf("%q: %v\n%s", input, err, p.errors.String())
	}
	answer := make([]byte, length)
	if _, err := io.ReadFull(p.out, answer); err != nil {
		t.Fatal(err)
	}
	if length == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(answer), "\x00"), "\x00")
}
