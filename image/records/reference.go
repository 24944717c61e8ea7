package records

import (
	"net"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// ParseName normalises a reference: docker.io/library and :latest are filled in,
// and of a tag and a digest only the digest counts, as for the kubelet.
func ParseName(s string) (reference.Named, error) {
	ref, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return nil, &api.Error{Reason: api.InvalidImageName, Image: s, Err: report.New(report.Usage,
			"an image is named [REGISTRY/]NAME[:TAG][@sha256:DIGEST], in lower case", "image name %q: %w", s, err)}
	}
	if d, ok := ref.(reference.Digested); ok {
		if err := CheckDigest(d.Digest()); err != nil {
			return nil, &api.Error{Reason: api.InvalidImageName, Image: s, Err: err}
		}
		return reference.WithDigest(reference.TrimNamed(ref), d.Digest())
	}
	return reference.TagNameOnly(ref), nil
}

// ValidateName is the error of a reference that names no image, or nil.
func ValidateName(ref string) error {
	if _, ok := ParseID(ref); ok {
		return nil
	}
	_, err := ParseName(ref)
	return err
}

// NormalizeName is a reference with everything that it leaves out; what is no reference stays
// as it is.
func NormalizeName(ref string) string {
	if name, err := ParseName(ref); err == nil {
		return name.String()
	}
	return ref
}

// ParseID takes a whole image id, with or without "sha256:".
func ParseID(s string) (digest.Digest, bool) {
	hex, ok := idPrefix(s)
	if !ok || len(hex) < 64 {
		return "", false
	}
	return digest.NewDigestFromEncoded(digest.SHA256, hex), true
}

// idPrefix takes the hexadecimal digits, at least four, of what may be an image
// id or its beginning.
func idPrefix(s string) (string, bool) {
	hex := strings.TrimPrefix(s, "sha256:")
	return hex, len(hex) >= 4 && len(hex) <= 64 && IsHex(hex)
}

// IsHex says whether all of it are hexadecimal digits, as ids are written.
func IsHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// CheckDigest admits only what is safe as a path and strong as a hash. Every
// digest that comes from outside goes through it first.
func CheckDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return report.New(report.Failure, "", "digest %q: %w", d, err)
	}
	if d.Algorithm() != digest.SHA256 {
		return report.New(report.Failure, "", "digest %q: only sha256 is supported", d)
	}
	return nil
}

// IsLoopback says whether the registry runs on this machine. Such a one is allowed
// to speak plain HTTP, as docker allows it.
func IsLoopback(ref reference.Named) bool {
	host := reference.Domain(ref)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsPinned says whether a reference stands for the same image for ever: it has a digest, or is
// an id.
func IsPinned(ref string) bool {
	if _, ok := ParseID(ref); ok {
		return true
	}
	name, err := ParseName(ref)
	_, digested := name.(reference.Digested)
	return err == nil && digested
}
