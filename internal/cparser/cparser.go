// Package cparser runs parsers in C in a process of their own, with checks of every access to memory. Only tests import it.
package cparser

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Parser is a process that parses inputs. Its source includes parser.h.
type Parser struct {
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// New compiles a source under AddressSanitizer and UndefinedBehaviorSanitizer, and starts it. The process ends with the test.
func New(t testing.TB, source string) *Parser {
	t.Helper()
	program := filepath.Join(t.TempDir(), "parser")
	out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-D_FILE_OFFSET_BITS=64", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-o", program, source).CombinedOutput()
	if err != nil {
		t.Fatalf("compile the parsers: %v\n%s", err, out)
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
