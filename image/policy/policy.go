package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// findPolicy returns the policy file that applies, "" if there is none, which allows every image. The order is
// the library's: the variable's, the user's, the machine's, the distribution's.
func findPolicy() (string, error) {
	const variable = "CONTAINERS_POLICY_JSON"
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	paths, err := configfile.GetSearchPaths(&configfile.File{Name: "policy", Extension: "json", DoNotLoadDropInFiles: true})
	if err != nil {
		return "", fmt.Errorf("look for the signature policy: %w", err)
	}
	for _, path := range paths.MainFiles {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for the signature policy: %w", err)
		}
	}
	return "", nil
}

// Checker checks images by policy.json(5).
type Checker struct {
	File func() (string, error) // returns the path of policy.json; "": there is none
}

// Default returns a Checker with the policy that applies.
func Default() Checker { return Checker{findPolicy} }

// Check checks an image by policy.json(5). The error names the file that forbids it. The library enforces
// all of the policy, including signatures.
func (s Checker) Check(ctx context.Context, img types.UnparsedImage) error {
	path, err := s.File()
	if err != nil || path == "" {
		return err
	}
	policy, err := signature.NewPolicyFromFile(path)
	if err != nil {
		return refusal(path, "correct it: containers-policy.json(5) describes it", err)
	}
	policyContext, err := signature.NewPolicyContext(policy)
	if err != nil {
		return refusal(path, "", err)
	}
	defer policyContext.Destroy()
	ok, err := policyContext.IsRunningImageAllowed(ctx, img)
	if ok && err == nil {
		return nil
	}
	if err == nil {
		err = errors.New("it is not allowed")
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return refusal(path, path+" defines the allowed images and their signers: containers-policy.json(5)", err)
}

func refusal(path, hint string, err error) error {
	return &api.Error{Reason: api.SignatureValidationFailed, Err: report.New(report.Failure, hint, "the signature policy %s refuses it: %w", path, err)}
}

// CheckFile checks an image in a file or directory. It has no signatures.
func (s Checker) CheckFile(ctx context.Context, transport, path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if path, err = filepath.Abs(real); err != nil {
			return err
		}
	} else {
		path = "" // a pipe has no path: the transport's own rule applies
	}
	return s.Check(ctx, fileImage{fileRef{transport, path}})
}

// fileImage is an image in a file, with what a policy needs of it.
type fileImage struct{ ref fileRef }

func (i fileImage) Reference() types.ImageReference { return i.ref }
func (i fileImage) Manifest(context.Context) ([]byte, string, error) {
	return nil, "", errors.New("an image in a file has no signatures")
}
func (i fileImage) Signatures(context.Context) ([][]byte, error) { return nil, nil }

// fileRef is its reference, as in the library's transport of that name: its scopes are the path and the
// directories above.
type fileRef struct{ transport, path string }

func (r fileRef) Transport() types.ImageTransport     { return fileTransport(r.transport) }
func (r fileRef) StringWithinTransport() string       { return r.path }
func (r fileRef) DockerReference() reference.Named    { return nil }
func (r fileRef) PolicyConfigurationIdentity() string { return r.path }
func (r fileRef) PolicyConfigurationNamespaces() []string {
	var above []string
	for path := r.path; ; {
		last := strings.LastIndex(path, "/")
		if last < 1 {
			return above
		}
		path = path[:last]
		above = append(above, path)
	}
}

var errNameOnly = errors.New("this is only a name")

func (fileRef) NewImage(context.Context, *types.SystemContext) (types.ImageCloser, error) {
	return nil, errNameOnly
}
func (fileRef) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return nil, errNameOnly
}
func (fileRef) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errNameOnly
}
func (fileRef) DeleteImage(context.Context, *types.SystemContext) error { return errNameOnly }

type fileTransport string

func (t fileTransport) Name() string { return string(t) }
func (fileTransport) ParseReference(string) (types.ImageReference, error) {
	return nil, errNameOnly
}
func (fileTransport) ValidatePolicyConfigurationScope(string) error { return nil }
