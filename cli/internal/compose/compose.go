// Package compose converts compose files to manifests, in the image program.
package compose

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/progress"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest/compose/api"
)

// Convert returns the manifest of compose files, and what they have that has no effect. Its error lists all
// that is wrong with them.
func Convert(env *cmdutil.Env, request api.Request) (api.Result, error) {
	var result api.Result
	shown := progress.New(env, "")
	defer shown.End()
	shown.Wait("converting %s", strings.Join(request.Files, ", "))
	text, err := json.Marshal(request)
	if err != nil {
		return result, fmt.Errorf("encode the names of the files: %w", err)
	}
	var in io.Reader
	if slices.Contains(request.Files, "-") {
		in = env.In
	}
	out, err := env.RunImageProgram(protocol.EntryCompose, []string{string(text)}, in)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return result, report.New(report.Internal, "", "read the converted compose files: %w", err)
	}
	if len(result.Problems) == 0 {
		return result, nil
	}
	lines := make([]string, len(result.Problems))
	for i, p := range result.Problems {
		lines[i] = p.String()
	}
	return result, report.New(report.Usage, "docs/reference/compose.md lists what podrun supports of compose files", "the compose file cannot be converted\n%s", strings.Join(lines, "\n"))
}

// Warn prints attributes without effect.
func Warn(env *cmdutil.Env, list []api.Message) {
	for _, m := range list {
		fmt.Fprintln(env.ErrOut, report.Escape("podrun: warning: "+m.String()))
	}
}
