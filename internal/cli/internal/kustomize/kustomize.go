// Package kustomize is the client of the image program that builds kustomizations and applies patches.
package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/kustomize/api"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
)

// Build returns what kubectl kustomize prints for a directory, and writes kustomize's warnings to stderr.
func Build(env *cmdutil.Env, dir string) ([]byte, error) {
	result, err := call(env, protocol.EntryKustomize, api.Request{Dir: dir, AllowRemote: env.AllowRemote})
	if err != nil {
		return nil, err
	}
	if result.Warning != "" {
		for line := range strings.Lines(result.Warning) {
			fmt.Fprintln(env.ErrOut, report.Escape("podrun: warning: "+strings.TrimSuffix(strings.TrimPrefix(line, "# Warning: "), "\n")))
		}
	}
	hint := ""
	switch {
	case result.Problem == "":
		return result.Output, nil
	case result.Remote:
		hint = "--allow-remote fetches bases and files by git and http"
	case strings.Contains(result.Problem, "--enable-helm"):
		hint = "podrun runs no helm: put what helm template prints into a file"
	}
	return nil, report.New(report.Usage, hint, "cannot build the kustomization %s: %s", dir, strings.ReplaceAll(result.Problem, "\n", " "))
}

// Patch returns an object in JSON after a patch.
func Patch(env *cmdutil.Env, p api.Patch) ([]byte, error) {
	result, err := call(env, protocol.EntryPatch, p)
	if err == nil && result.Problem != "" {
		err = report.New(report.Usage, "podrun patch --help", "cannot apply the patch: %s", result.Problem)
	}
	return result.Output, err
}

// call starts the image program for one request.
func call(env *cmdutil.Env, entry string, request any) (result api.Result, err error) {
	dirs, err := env.Dirs()
	if err != nil {
		return result, err
	}
	text, err := json.Marshal(request)
	if err != nil {
		return result, fmt.Errorf("encode the request: %w", err)
	}
	err = programs.CallImage(dirs, "call the image program", entry, nil, bytes.NewReader(text), &result)
	return result, err
}
