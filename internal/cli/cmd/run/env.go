package run

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// setEnv sets the variables of the files, then the variables of -e.
func (o *options) setEnv(_ *corev1.Pod, c *corev1.Container) error {
	for _, file := range o.files {
		lines, err := cmdutil.ReadEnvFile(file)
		if err != nil {
			return err
		}
		for _, line := range lines {
			o.setVariable(c, line)
		}
	}
	for _, word := range o.variables {
		if word == "" || word[0] == '=' {
			return usageErrorf("--env: %q has no name", word)
		}
		o.setVariable(c, word)
	}
	return nil
}

// setVariable sets NAME=VALUE; NAME alone takes its value from podrun's environment, if it is there.
func (o *options) setVariable(c *corev1.Container, word string) {
	name, value, whole := strings.Cut(word, "=")
	if !whole {
		if value = o.env.Getenv(name); value == "" {
			return
		}
	}
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: literal(value)})
}
