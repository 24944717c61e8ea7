package environ

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// ParseFile returns the value of a key in a file of variables. Each line is VAR='value'. The value
// stands between single quotes, is taken literally and may span several lines; # begins a comment.
// The value is "" for a missing key, and for one with only white space after the equals sign
// (kubelet: ParseEnv in pkg/kubelet/util/env). Errors contain the line number and none of the text.
func ParseFile(text []byte, key string) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		switch trimmed := strings.TrimRight(name, " \t"); {
		case !ok:
			return "", badLine(n, "missing '='")
		case trimmed == "":
			return "", badLine(n, "empty variable name")
		case trimmed != name:
			return "", badLine(n, "whitespace before '=' is not allowed")
		}
		if value != strings.TrimLeft(value, " \t") { // as in a shell: the value is empty
			if name == key {
				return "", nil
			}
			continue
		}
		rest, ok := strings.CutPrefix(value, "'")
		if !ok {
			return "", badLine(n, "value must be enclosed in single quotes")
		}
		began := n
		var b strings.Builder
		for {
			inside, after, closed := strings.Cut(rest, "'")
			b.WriteString(inside)
			if closed {
				if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
					return "", badLine(n, "unexpected content after closing quote")
				}
				break
			}
			b.WriteByte('\n')
			if !lines.Scan() {
				return "", fmt.Errorf("invalid environment variable format starting at line %d: unclosed single quote", began)
			}
			n++
			rest = lines.Text()
		}
		if name == key {
			return b.String(), nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("error reading environment variable file: %w", err)
	}
	return "", nil
}

func badLine(n int, what string) error {
	return fmt.Errorf("invalid environment variable format at line %d: %s", n, what)
}
