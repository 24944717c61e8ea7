package cmdutil

import (
	"bytes"
	"io"
	"os"

	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
)

// RunImageProgram runs an entry point of the image program, and returns what it writes to standard output.
func (env *Env) RunImageProgram(entry string, args []string, in io.Reader) ([]byte, error) {
	dirs, err := env.Dirs()
	if err != nil {
		return nil, err
	}
	path, started, err := programs.Image(dirs)
	if err != nil {
		return nil, err
	}
	cmd := reexec.Command(reexec.Spec{Name: entry, Args: args, Program: path})
	var out bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = reexec.Environ(), in, &out, os.Stderr
	err = cmd.Start()
	started()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, report.New(report.Internal, "", "run the image program for %s: %w", entry, err)
	}
	return out.Bytes(), nil
}
