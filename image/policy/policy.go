package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"
	"golang.org/x/sys/unix"

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
func (s Checker) Check(ctx context.Context, img types.UnparsedImage, referrers *Referrers) error {
	path, err := s.File()
	if err != nil || path == "" {
		return err
	}
	text, err := readConfig(path)
	if err != nil {
		return refusal(path, "", err)
	}
	policy, err := signature.NewPolicyFromBytes(text)
	if err != nil {
		return refusal(path, "correct it: containers-policy.json(5) describes it", fmt.Errorf("read %s: %w", path, err))
	}
	requirements := requirementsFor(policy, img.Reference())
	if err := checkKeyFiles(requirements); err != nil {
		return refusal(path, "", err)
	}
	err = isAllowed(ctx, policy, img)
	if err != nil && referrers != nil {
		err = meetsByBundles(ctx, requirements, img, referrers, err)
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	hint := path + " defines the allowed images and their signers: containers-policy.json(5)"
	return refusal(path, cmp.Or(report.Hint(err), hint), err)
}

// isAllowed returns the library's reason if a policy does not allow an image.
func isAllowed(ctx context.Context, policy *signature.Policy, img types.UnparsedImage) error {
	policyContext, err := signature.NewPolicyContext(policy)
	if err != nil {
		return err
	}
	defer policyContext.Destroy()
	if ok, err := policyContext.IsRunningImageAllowed(ctx, img); err != nil || ok {
		return err
	}
	return errors.New("it is not allowed")
}

// readConfig reads a file of the policy. It does not wait for the writer of a FIFO.
func readConfig(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case st.Size() > maxConfig:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, st.Size(), maxConfig)
	}
	return io.ReadAll(io.LimitReader(f, maxConfig))
}

// maxConfig is the maximum size of a policy and of a file of keys.
const maxConfig = 4 << 20

// checkKeyFiles returns an error if a requirement names a file of keys that is no regular file: the library would
// wait for the writer of a FIFO. It reports those that do not exist.
func checkKeyFiles(requirements signature.PolicyRequirements) error {
	text, err := json.Marshal(requirements)
	if err != nil {
		return err
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	return checkPaths("", fields)
}

// checkPaths checks the files in all fields whose names end in Path or Paths.
func checkPaths(field string, value any) error {
	switch value := value.(type) {
	case map[string]any:
		for name, of := range value {
			if err := checkPaths(name, of); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range value {
			if err := checkPaths(field, item); err != nil {
				return err
			}
		}
	case string:
		isPath := strings.HasSuffix(field, "Path") || strings.HasSuffix(field, "Paths")
		if st, err := os.Stat(value); isPath && err == nil && !st.Mode().IsRegular() {
			return fmt.Errorf("%s %s is not a regular file", field, value)
		}
	}
	return nil
}

func refusal(path, hint string, err error) error {
	return &api.Error{Reason: api.SignatureValidationFailed, Err: report.New(report.Failure, hint, "the signature policy %s refuses it: %w", path, err)}
}

// CheckFile checks an image in a file or directory, without signatures.
func (s Checker) CheckFile(ctx context.Context, transport, path string) error {
	ref, err := newFileRef(transport, path)
	if err != nil {
		return err
	}
	return s.Check(ctx, fileImage{ref}, nil)
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

// newFileRef returns the reference of a file or directory. A pipe has no path: the transport's own rule applies.
func newFileRef(transport, path string) (fileRef, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fileRef{transport, ""}, nil
	}
	path, err = filepath.Abs(real)
	return fileRef{transport, path}, err
}

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
