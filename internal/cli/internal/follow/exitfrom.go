package follow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/pod"
)

// ExitCodeFrom determines the exit code of `up` in the foreground. It is "" (the pods' phases), one of
// the words below (as Quadlet's ExitCodePropagation), or the name of a container (as docker compose's
// --exit-code-from).
type ExitCodeFrom string

const (
	ExitAll  ExitCodeFrom = "all"  // failure if every app container has failed
	ExitAny  ExitCodeFrom = "any"  // failure if some app container has failed
	ExitNone ExitCodeFrom = "none" // no container's end is a failure
)

// ParseExitCodeFrom parses --exit-code-from for the pods of the command.
func ParseExitCodeFrom(word string, pods []*podup.Target) (ExitCodeFrom, error) {
	rule := ExitCodeFrom(word)
	if word == "" || slices.Contains([]ExitCodeFrom{ExitAll, ExitAny, ExitNone}, rule) {
		return rule, nil
	}
	var names []string
	count := 0
	for _, p := range pods {
		for _, c := range p.Object.Pod.Spec.Containers {
			names = append(names, c.Name)
			if c.Name == word {
				count++
			}
		}
	}
	switch count {
	case 0:
		return "", cmdutil.UsageErrorf("up", "--exit-code-from %s: no pod has such a container; use all, any, none, %s", word, strings.Join(names, ", "))
	case 1:
		return rule, nil
	}
	return "", cmdutil.UsageErrorf("up", "--exit-code-from %s: several pods have such a container", word)
}

// Result returns the error of a command whose pods have ended with errs. The rule can only override
// failures of pods.
func (rule ExitCodeFrom) Result(pods []*podup.Target, errs []error) error {
	if rule == "" {
		return errors.Join(errs...)
	}
	var other []error
	for i, p := range pods {
		if p.Last == nil || p.Last.Deleting {
			other = append(other, errs[i])
		}
	}
	if err := errors.Join(other...); err != nil {
		return err
	}
	code := rule.Code(pods)
	if code == 0 {
		return nil
	}
	return &exitcode.Error{Code: code, Err: errors.Join(append(errs, fmt.Errorf("--exit-code-from %s: exit code %d", rule, code))...)}
}

// Code returns the exit code from the last ends of the app containers. A container that never ended, or
// never ran, counts as failed unless the rule ignores it.
func (rule ExitCodeFrom) Code(pods []*podup.Target) int {
	failed, total := 0, 0
	for _, p := range pods {
		for i := range p.Last.Containers {
			c := &p.Last.Containers[i]
			if ExitCodeFrom(c.Name) == rule {
				return lastCode(c)
			}
			total++
			if lastCode(c) != 0 {
				failed++
			}
		}
	}
	switch {
	case rule == ExitAny && failed > 0, rule == ExitAll && failed == total && total > 0:
		return exitcode.Failure
	}
	return 0
}

func lastCode(c *pod.ContainerStatus) int {
	for _, t := range []*pod.Terminated{c.State.Terminated, c.LastState.Terminated} {
		if t != nil {
			return t.ExitCode
		}
	}
	return exitcode.Failure
}
