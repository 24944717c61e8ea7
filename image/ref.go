package image

import (
	"net"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
)

// parseName normalises a reference: docker.io/library and :latest are filled in,
// and of a tag and a digest only the digest counts, as for the kubelet.
func parseName(s string) (reference.Named, error) {
	ref, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return nil, &Error{Reason: InvalidImageName, Image: s, Err: report.New(report.Usage,
			"an image is named [REGISTRY/]NAME[:TAG][@sha256:DIGEST], in lower case", "image name %q: %w", s, err)}
	}
	if d, ok := ref.(reference.Digested); ok {
		if err := checkDigest(d.Digest()); err != nil {
			return nil, &Error{Reason: InvalidImageName, Image: s, Err: err}
		}
		return reference.WithDigest(reference.TrimNamed(ref), d.Digest())
	}
	return reference.TagNameOnly(ref), nil
}

// CheckName is the error of a reference that names no image, or nil.
func CheckName(ref string) error {
	if _, ok := parseID(ref); ok {
		return nil
	}
	_, err := parseName(ref)
	return err
}

// FullName is a reference with everything that it leaves out; what is no reference stays
// as it is.
func FullName(ref string) string {
	if name, err := parseName(ref); err == nil {
		return name.String()
	}
	return ref
}

// parseID takes a whole image id, with or without "sha256:".
func parseID(s string) (digest.Digest, bool) {
	hex, ok := idBeginning(s)
	if !ok || len(hex) < 64 {
		return "", false
	}
	return digest.NewDigestFromEncoded(digest.SHA256, hex), true
}

// idBeginning takes the hexadecimal digits, at least four, of what may be an image
// id or its beginning.
func idBeginning(s string) (string, bool) {
	hex := strings.TrimPrefix(s, "sha256:")
	return hex, len(hex) >= 4 && len(hex) <= 64 && isHex(hex)
}

// isHex says whether all of it are hexadecimal digits, as ids are written.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// checkDigest admits only what is safe as a path and strong as a hash. Every
// digest that comes from outside goes through it first.
func checkDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return report.New(report.Failure, "", "digest %q: %w", d, err)
	}
	if d.Algorithm() != digest.SHA256 {
		return report.New(report.Failure, "", "digest %q: only sha256 is supported", d)
	}
	return nil
}

// loopback says whether the registry runs on this machine. Such a one is allowed
// to speak plain HTTP, as docker allows it.
func loopback(ref reference.Named) bool {
	host := reference.Domain(ref)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Fixed says whether a reference stands for the same image for ever: it has a digest, or is
// an id.
func Fixed(ref string) bool {
	if _, ok := parseID(ref); ok {
		return true
	}
	name, err := parseName(ref)
	_, digested := name.(reference.Digested)
	return err == nil && digested
}
