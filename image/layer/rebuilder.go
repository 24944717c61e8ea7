package layer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
)

// Rebuild makes the tar stream of the layer in dir again, or compares its sizes only. out, if not nil,
// receives the stream.
func Rebuild(id digest.Digest, dir string, sizes bool, out *os.File) (*RebuildResult, error) {
	recipe, err := os.Open(filepath.Join(dir, RecipeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, report.New(report.Failure, "pull or load its image again", "layer %s has no record of its files: an earlier podrun has stored it", id)
	}
	if err != nil {
		return nil, err
	}
	defer recipe.Close()
	arg, err := json.Marshal(rebuildRequest{Dir: filepath.Join(dir, records.LayerFS), Sizes: sizes, Write: out != nil})
	if err != nil {
		return nil, err
	}
	extra := []*os.File{recipe}
	var stdout strings.Builder
	var stderr tailBuffer
	var answer, theirs *os.File
	if out != nil {
		if answer, theirs, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer answer.Close()
		extra = append(extra, theirs)
	}
	cmd := reexec.Command(reexec.Spec{Name: protocol.EntryRebuild, Args: []string{string(arg)}, Userns: true, Net: true, ExtraFiles: extra})
	dropEnviron(cmd)
	cmd.Dir, cmd.Stderr = "/", &stderr
	if out != nil {
		cmd.Stdout = out
	} else {
		cmd.Stdout = &stdout
	}
	err = cmd.Start()
	if theirs != nil {
		theirs.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("look at layer %s: %w", id, err)
	}
	var r RebuildResult
	var rerr error
	if answer != nil {
		rerr = json.NewDecoder(answer).Decode(&r)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("look at layer %s: %w", id, stderrOr(&stderr, err))
	}
	if answer == nil {
		rerr = json.Unmarshal([]byte(stdout.String()), &r)
	}
	if rerr != nil {
		return nil, fmt.Errorf("look at layer %s: %w", id, rerr)
	}
	return &r, nil
}

// stderrOr returns the child's error output as an error, or err if there is none.
func stderrOr(stderr *tailBuffer, err error) error {
	var exit *exec.ExitError
	if stdout := stderr.String(); stdout != "" && errors.As(err, &exit) {
		return errors.New(stdout)
	}
	return err
}
