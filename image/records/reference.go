package records

import (
	"net"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/report"
)

// ParseName normalises a reference: it fills in docker.io/library and :latest; of a tag and a digest only
// the digest counts, as for the kubelet.
func ParseName(s string) (reference.Name, error) {
	ref, err := reference.Parse(s)
	if err != nil {
		return reference.Name{}, &api.Error{Reason: api.InvalidImageName, Image: s, Err: report.New(report.Usage,
			"an image is named [REGISTRY/]NAME[:TAG][@sha256:DIGEST], in lower case", "image name %q: %w", s, err)}
	}
	switch {
	case ref.Digest != "":
		if err := CheckDigest(ref.Digest); err != nil {
			return reference.Name{}, &api.Error{Reason: api.InvalidImageName, Image: s, Err: err}
		}
		ref.Tag = ""
	case ref.Tag == "":
		ref.Tag = "latest"
	}
	return ref, nil
}

// ValidateName returns the error of a reference that names no image, or nil.
func ValidateName(ref string) error {
	if _, ok := ParseID(ref); ok {
		return nil
	}
	_, err := ParseName(ref)
	return err
}

// NormalizeName returns a reference with its omitted parts filled in; anything else is returned unchanged.
func NormalizeName(ref string) string {
	if name, err := ParseName(ref); err == nil {
		return name.String()
	}
	return ref
}

// ParseID parses a whole image id, with or without "sha256:".
func ParseID(s string) (digest.Digest, bool) {
	hex, ok := idPrefix(s)
	if !ok || len(hex) < 64 {
		return "", false
	}
	return digest.NewDigestFromEncoded(digest.SHA256, hex), true
}

// idPrefix returns the hexadecimal digits, at least four, of a possible image id or its prefix.
func idPrefix(s string) (string, bool) {
	hex := strings.TrimPrefix(s, "sha256:")
	return hex, len(hex) >= 4 && len(hex) <= 64 && IsHex(hex)
}

// IsHex reports whether s has only hexadecimal digits, in the lower case of ids.
func IsHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// CheckDigest accepts only digests that are safe as a path and strong as a hash. Every digest from outside
// is checked by it first.
func CheckDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return report.New(report.Failure, "", "digest %q: %w", d, err)
	}
	if d.Algorithm() != digest.SHA256 {
		return report.New(report.Failure, "", "digest %q: only sha256 is supported", d)
	}
	return nil
}

// IsLoopback reports whether the registry runs on this machine. Such a registry may use plain HTTP, as in
// docker.
func IsLoopback(ref reference.Name) bool {
	host := ref.Domain
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsPinned reports whether a reference always stands for the same image: it has a digest, or is an id.
func IsPinned(ref string) bool {
	if _, ok := ParseID(ref); ok {
		return true
	}
	name, err := ParseName(ref)
	return err == nil && name.Digest != ""
}
