// Package compose is the client of the image program that converts compose files to manifests.
package compose

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
)

// Convert returns the manifest of compose files, and what they have that has no effect. Its error lists all
// that is wrong with them.
func Convert(env *cmdutil.Env, request api.Request) (api.Result, error) {
	result, err := Ask(env, request)
	if err == nil {
		err = Check(result)
	}
	return result, err
}

// Check returns the problems of a result as an error, or nil.
func Check(result api.Result) error {
	if len(result.Problems) == 0 {
		return nil
	}
	lines := make([]string, len(result.Problems))
	for i, p := range result.Problems {
		lines[i] = p.String()
	}
	return report.New(report.Usage, "docs/reference/compose.md lists what podrun supports of compose files", "the compose file cannot be converted\n%s", strings.Join(lines, "\n"))
}

// Inputs returns builds with the hash of their inputs.
func Inputs(env *cmdutil.Env, builds []api.Build) ([]api.Build, error) {
	result, err := Ask(env, api.Request{Inputs: builds})
	return result.Builds, err
}

// Ask returns the result of a request, which may have problems.
func Ask(env *cmdutil.Env, request api.Request) (api.Result, error) {
	var result api.Result
	dirs, err := env.Dirs()
	if err != nil {
		return result, err
	}
	shown := progress.New(env, "")
	defer shown.End()
	shown.Wait("reading the project")
	text, err := json.Marshal(request)
	if err != nil {
		return result, fmt.Errorf("encode the names of the files: %w", err)
	}
	var in io.Reader
	if slices.Contains(request.Files, "-") {
		in = env.In
	}
	err = programs.CallImage(dirs, "convert compose files", protocol.EntryCompose, []string{string(text)}, in, &result)
	return result, err
}

// Warn prints attributes without effect.
func Warn(env *cmdutil.Env, list []api.Message) {
	for _, m := range list {
		fmt.Fprintln(env.ErrOut, report.Escape("podrun: warning: "+m.String()))
	}
}
