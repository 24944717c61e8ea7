package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner/sandbox"
)

// resolveEnv returns the environment of the container. It records an environment that a later supervisor could
// not resolve again to the same result.
func (x *Container) resolveEnv(s *sandbox.Sandbox) (*environ.Environment, error) {
	e, err := environ.Resolve(s.Plan, x.Plan, s.EnvSources())
	if err != nil {
		return nil, sandbox.NewConfigError(err)
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

func (x *Container) envFile(s *sandbox.Sandbox) string {
	return s.Pod.EnvFile(x.Plan.Name, x.Attempt)
}

// loadEnv restores the environment of a running container.
func (x *Container) loadEnv(s *sandbox.Sandbox) {
	b, err := os.ReadFile(x.envFile(s))
	if err == nil && json.Unmarshal(b, &x.env) == nil {
		return
	}
	e, err := environ.Resolve(&pod.Plan{}, x.Plan, environ.Sources{
		Object: func(pod.ObjectKind, string) (*pod.Object, error) { return nil, fs.ErrNotExist },
		Field:  func(string) (string, error) { return "", fs.ErrNotExist },
		File:   func(string, string) ([]byte, error) { return nil, fs.ErrNotExist },
	})
	if x.env = x.Plan.Env; err == nil {
		x.env = e.Env
	}
}

func (x *Container) removeEnv(s *sandbox.Sandbox) error {
	if err := os.Remove(x.envFile(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
