// Package kustomize builds kustomizations with kustomize's own library, and applies patches to objects.
//
// The package is linked into the image program only: its libraries are larger than all other code that reads manifests.
package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/podrun/podrun/internal/manifest/kustomize/api"
	"github.com/podrun/podrun/internal/protocol"
)

// EntryPoints returns the entry points that build a kustomization and that patch an object. bound limits the memory of
// the process and, if withTime, its time.
func EntryPoints(bound func(withTime bool)) map[string]func(args []string) int {
	return map[string]func([]string) int{
		protocol.EntryKustomize: func([]string) int {
			return serve(os.Stdin, os.Stdout, func(request api.Request) api.Result {
				bound(!request.AllowRemote)
				return build(request)
			})
		},
		protocol.EntryPatch: func([]string) int {
			return serve(os.Stdin, os.Stdout, func(request api.Patch) api.Result {
				bound(true)
				return patch(request)
			})
		},
	}
}

// serve answers one request.
func serve[T any](in io.Reader, out io.Writer, answer func(T) api.Result) int {
	var request T
	if err := json.NewDecoder(in).Decode(&request); err != nil {
		fmt.Fprintln(os.Stderr, "podrun: cannot read the request:", err)
		return 2
	}
	if err := json.NewEncoder(out).Encode(answer(request)); err != nil {
		fmt.Fprintln(os.Stderr, "podrun: cannot write the result:", err)
		return 1
	}
	return 0
}

// errRemote is the error of a request over the network.
var errRemote = errors.New("remote bases are not allowed")

// noNetwork refuses every request.
type noNetwork struct{ used *bool }

// RoundTrip implements http.RoundTripper.
func (n noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	*n.used = true
	return nil, errRemote
}

// build builds a kustomization as kubectl kustomize does: plugins and helm are disabled, and files outside of the root are
// refused. Without AllowRemote this process, which builds nothing else, has neither HTTP nor git.
func build(request api.Request) api.Result {
	var warnings bytes.Buffer
	log.SetOutput(&warnings)
	log.SetFlags(0)
	remote := false
	if !request.AllowRemote {
		http.DefaultTransport = noNetwork{&remote}
		os.Setenv("PATH", "")
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // as the command; the default of the library keeps the order of the files
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), request.Dir)
	var text []byte
	if err == nil {
		text, err = resources.AsYaml()
	}
	result := api.Result{Output: text, Warning: strings.TrimRight(warnings.String(), "\n")}
	if err != nil {
		result.Problem = err.Error()
		result.Remote = !request.AllowRemote && (remote || strings.Contains(result.Problem, "no 'git' program on path"))
	}
	return result
}
