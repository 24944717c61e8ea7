package programs

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// CallImage runs an entry point of the image program, and decodes the JSON that it prints into result. The error of a run
// that fails begins with what.
func CallImage(dirs store.Dirs, what, entry string, args []string, stdin io.Reader, result any) error {
	path, started, err := Image(dirs)
	if err != nil {
		return err
	}
	cmd := reexec.Command(reexec.Spec{Name: entry, Args: args, Program: path})
	var out bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = reexec.Environ(), stdin, &out, os.Stderr
	err = cmd.Start()
	started()
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), result)
	}
	if err != nil {
		return report.New(report.Internal, "", "%s: %w", what, err)
	}
	return nil
}
