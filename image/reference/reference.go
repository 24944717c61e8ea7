// Package reference parses the names of images, as github.com/distribution/reference does, without regular
// expressions: every command links it.
package reference

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
)

const (
	dockerHub = "docker.io"
	maxLength = 255 // of domain and path
)

var (
	errFormat    = errors.New("invalid reference format")
	errUpperCase = errors.New("repository name must be lowercase")
	errTooLong   = fmt.Errorf("repository name must not be more than %d characters", maxLength)
)

// Name is the name of an image, DOMAIN/PATH[:TAG][@DIGEST], with the parts of its repository that the user
// may omit. The zero Name names nothing.
type Name struct {
	Domain string // HOST[:PORT]
	Path   string
	Tag    string
	Digest digest.Digest
}

// Repository returns the name without tag and digest.
func (n Name) Repository() string {
	if n.Domain == "" {
		return n.Path
	}
	return n.Domain + "/" + n.Path
}

// String returns the whole name.
func (n Name) String() string { return n.Repository() + n.version() }

// Familiar returns the name without the parts of docker.io that the user may omit.
func (n Name) Familiar() string {
	if n.Domain != dockerHub {
		return n.String()
	}
	if official, ok := strings.CutPrefix(n.Path, "library/"); ok && !strings.Contains(official, "/") {
		return official + n.version()
	}
	return n.Path + n.version()
}

func (n Name) version() string {
	v := ""
	if n.Tag != "" {
		v = ":" + n.Tag
	}
	if n.Digest != "" {
		v += "@" + n.Digest.String()
	}
	return v
}

// Parse parses a name, and fills in docker.io and library/.
func Parse(s string) (Name, error) {
	if len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" {
		return Name{}, fmt.Errorf("invalid repository name (%s), cannot specify 64-byte hexadecimal strings", s)
	}
	domain, rest := splitDomain(s)
	if name, _, _ := strings.Cut(rest, ":"); strings.ToLower(name) != name {
		return Name{}, fmt.Errorf("%w: %w", errFormat, errUpperCase)
	}
	n, ok := split(domain, rest)
	switch {
	case !ok:
		if _, ok := split(strings.ToLower(domain), strings.ToLower(rest)); ok {
			return Name{}, errUpperCase
		}
		return Name{}, errFormat
	case len(n.Repository()) > maxLength:
		return Name{}, errTooLong
	case n.Digest != "":
		return n, n.Digest.Validate()
	}
	return n, nil
}

// ParseFull parses a name of which nothing is omitted.
func ParseFull(s string) (Name, error) {
	n, err := Parse(s)
	if err == nil && n.String() != s {
		err = errors.New("repository name must be canonical")
	}
	return n, err
}

// IsShort reports whether a name has no registry, as "busybox" and "team/web:1".
func IsShort(s string) bool {
	first, _, ok := strings.Cut(s, "/")
	return !ok || !strings.ContainsAny(first, ".:") && first != "localhost"
}

// splitDomain splits a name into its domain and the rest.
func splitDomain(s string) (domain, rest string) {
	domain, rest = dockerHub, s
	if !IsShort(s) {
		domain, rest, _ = strings.Cut(s, "/")
	}
	if domain == "index.docker.io" {
		domain = dockerHub
	}
	if domain == dockerHub && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return domain, rest
}

// split splits and checks the parts of a name. What is no domain may be the first element of a path.
func split(domain, rest string) (n Name, ok bool) {
	rest, sum, digested := strings.Cut(rest, "@")
	path, tag, tagged := strings.Cut(rest, ":")
	if tagged && !isTag(tag) || digested && !isDigest(sum) {
		return Name{}, false
	}
	if !isDomain(domain) {
		domain, path = "", domain+"/"+path
	}
	for element := range strings.SplitSeq(path, "/") {
		if !isElement(element) {
			return Name{}, false
		}
	}
	return Name{domain, path, tag, digest.Digest(sum)}, true
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool { return isLower(c|0x20) || isDigit(c) }

func all(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

// isElement reports whether s is an element of a path: lower case letters and digits, separated by a dot,
// one or two underscores, or hyphens.
func isElement(s string) bool {
	for {
		end := 0
		for end < len(s) && (isLower(s[end]) || isDigit(s[end])) {
			end++
		}
		if end == 0 || end == len(s) {
			return end > 0
		}
		switch s = s[end:]; s[0] {
		case '.':
			s = s[1:]
		case '_':
			s = strings.TrimPrefix(s[1:], "_")
		case '-':
			s = strings.TrimLeft(s, "-")
		default:
			return false
		}
	}
}

func isDomain(s string) bool {
	host, port, ok := strings.Cut(s, ":")
	if ok && (port == "" || !all(port, isDigit)) {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || !isAlnum(label[0]) || !isAlnum(label[len(label)-1]) || !all(label, func(c byte) bool { return isAlnum(c) || c == '-' }) {
			return false
		}
	}
	return true
}

func isTag(s string) bool {
	return s != "" && len(s) <= 128 && s[0] != '.' && s[0] != '-' &&
		all(s, func(c byte) bool { return isAlnum(c) || c == '_' || c == '.' || c == '-' })
}

// isDigest reports whether s has the form of a digest: ALGORITHM:HEX. Whether it is one is checked later.
func isDigest(s string) bool {
	algorithm, hex, _ := strings.Cut(s, ":")
	if len(hex) < 32 || !all(hex, func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }) {
		return false
	}
	parts := strings.FieldsFunc(algorithm, func(r rune) bool { return strings.ContainsRune("-_+.", r) })
	length := len(parts) - 1
	for _, part := range parts {
		if length += len(part); !isLower(part[0]|0x20) || !all(part, isAlnum) {
			return false
		}
	}
	return len(parts) > 0 && length == len(algorithm) // no separator at an end, and no two in a row
}
