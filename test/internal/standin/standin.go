// Package standin has programs that Debian has not, for tests that run the commands of a page. A stand-in does what the pages use
// of its program.
package standin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/podrun/podrun/internal/cosigntest"
)

var programs = map[string]func(args []string) error{"cosign": cosign, "oras": oras}

// Become ends the process if it was started as one of the programs. A test binary calls it first.
func Become() {
	program, ok := programs[filepath.Base(os.Args[0])]
	if !ok {
		return
	}
	if err := program(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Copy writes the programs into a directory for PATH. A link would not do: only the user of the go
// command may enter the directory of the test binary.
func Copy(dir string) error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	for program := range programs {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, program), self, 0o755))
	}
	return err
}

// cosign is "cosign generate-key-pair" and "cosign sign --key FILE NAME@DIGEST" of cosign 3. Its key has no password.
func cosign(args []string) error {
	switch {
	case slices.Equal(args, []string{"generate-key-pair"}):
		return generateKeyPair()
	case len(args) == 4 && args[0] == "sign" && args[1] == "--key":
		return sign(args[2], args[3])
	}
	return fmt.Errorf("the stand-in does not know %q", args)
}

func generateKeyPair() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile("cosign.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile("cosign.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644))
}

// sign adds an artifact with a bundle to the registry, which refers to an image.
func sign(keyFile, reference string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return err
	}
	image, err := name.NewDigest(reference)
	if err != nil {
		return err
	}
	subject, err := remote.Head(image)
	if err != nil {
		return err
	}
	bundle, err := cosigntest.Bundle(subject.Digest.Hex, cosigntest.SignPredicate, parsed.(*ecdsa.PrivateKey))
	if err != nil {
		return err
	}
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), cosigntest.BundleType)
	artifact, err = mutate.Append(artifact, mutate.Addendum{Layer: static.NewLayer(bundle, cosigntest.BundleType)})
	if err != nil {
		return err
	}
	artifact = mutate.Subject(artifact, *subject).(v1.Image)
	digest, err := artifact.Digest()
	if err != nil {
		return err
	}
	return remote.Write(image.Context().Digest(digest.String()), artifact)
}

// oras is "oras cp -r NAME:TAG --to-oci-layout DIRECTORY:TAG".
func oras(args []string) error {
	if len(args) != 5 || args[0] != "cp" || args[1] != "-r" || args[3] != "--to-oci-layout" {
		return fmt.Errorf("the stand-in does not know %q", args)
	}
	from, err := name.NewTag(args[2])
	if err != nil {
		return err
	}
	image, err := remote.Image(from)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	dir, tag, _ := strings.Cut(args[4], ":")
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
		return err
	}
	index, err := remote.Referrers(from.Context().Digest(digest.String()))
	if err != nil {
		return err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range list.Manifests {
		referrer, err := remote.Image(from.Context().Digest(d.Digest.String()))
		if err != nil {
			return err
		}
		if err := to.AppendImage(referrer); err != nil {
			return err
		}
	}
	return nil
}
