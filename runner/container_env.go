package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/podrun/podrun/environ"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// resolve finds out what is in the environment of the container, and leaves it to
// supervisors that follow where they could not find out again.
func (x *container) resolve(s *sandbox) (*environ.Environment, error) {
	e, err := environ.Resolve(s.plan, x.plan, s.sources())
	if err != nil {
		return nil, newConfigError(err)
	}
	x.env, x.args = e.Env, e.Args
	if e.Fixed {
		return e, nil
	}
	b, err := json.Marshal(e.Env)
	if err == nil {
		err = store.WriteVolatile(x.envFile(s), b)
	}
	if err != nil {
		return nil, fmt.Errorf("record the environment: %w", err)
	}
	return e, nil
}

func (x *container) envFile(s *sandbox) string { return s.store.EnvFile(x.plan.Name, x.attempt) }

// adoptEnv is resolve for a container that runs.
func (x *container) adoptEnv(s *sandbox) {
	b, err := os.ReadFile(x.envFile(s))
	if err == nil && json.Unmarshal(b, &x.env) == nil {
		return
	}
	e, err := environ.Resolve(&pod.Plan{}, x.plan, environ.Sources{
		Object: func(pod.ObjectKind, string) (*pod.Object, error) { return nil, fs.ErrNotExist },
		Field:  func(string) (string, error) { return "", fs.ErrNotExist },
		File:   func(string, string) ([]byte, error) { return nil, fs.ErrNotExist },
	})
	if x.env = x.plan.Env; err == nil {
		x.env = e.Env
	}
}

func (x *container) dropEnv(s *sandbox) error {
	if err := os.Remove(x.envFile(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
