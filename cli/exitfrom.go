package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/pod"
)

// exitFrom says what decides the exit code of `up` in the foreground: "" (the pods'
// phases), one of the words below (as Quadlet's ExitCodePropagation), or the name of
// a container (as docker compose's --exit-code-from).
type exitFrom string

const (
	exitAll  exitFrom = "all"  // failure if every app container has failed
	exitAny  exitFrom = "any"  // failure if some app container has failed
	exitNone exitFrom = "none" // no container's end is a failure
)

func exitCodeFromFlag() cli.Flag {
	return &cli.StringFlag{Name: "exit-code-from", Usage: "end with the exit code of this `CONTAINER`; or: any, all (fail if any or all app containers failed), none (never fail because of them)"}
}

// exitRule reads --exit-code-from for the pods of the command.
func exitRule(word string, pods []*upPod) (exitFrom, error) {
	rule := exitFrom(word)
	if word == "" || slices.Contains([]exitFrom{exitAll, exitAny, exitNone}, rule) {
		return rule, nil
	}
	var names []string
	count := 0
	for _, p := range pods {
		for _, c := range p.object.Pod.Spec.Containers {
			names = append(names, c.Name)
			if c.Name == word {
				count++
			}
		}
	}
	switch count {
	case 0:
		return "", usageErrorf("up", "--exit-code-from %s: no pod has such a container; it is all, any, none, %s", word, strings.Join(names, ", "))
	case 1:
		return rule, nil
	}
	return "", usageErrorf("up", "--exit-code-from %s: several pods have such a container", word)
}

// verdict is the error with which the command ends whose pods have ended with errs.
// Only the failures of pods can be outvoted by the rule.
func (rule exitFrom) verdict(pods []*upPod, errs []error) error {
	if rule == "" {
		return errors.Join(errs...)
	}
	var other []error
	for i, p := range pods {
		if p.last == nil || p.last.Deleting {
			other = append(other, errs[i])
		}
	}
	if err := errors.Join(other...); err != nil {
		return err
	}
	code := rule.code(pods)
	if code == 0 {
		return nil
	}
	return &exitError{code: code, err: errors.Join(append(errs, fmt.Errorf("exit code %d is that of --exit-code-from %s", code, rule))...)}
}

// code is the exit code by the app containers' last ends. One that never ended, or
// never ran, counts as failed unless it is not asked for.
func (rule exitFrom) code(pods []*upPod) int {
	failed, total := 0, 0
	for _, p := range pods {
		for i := range p.last.Containers {
			c := &p.last.Containers[i]
			if exitFrom(c.Name) == rule {
				return lastCode(c)
			}
			total++
			if lastCode(c) != 0 {
				failed++
			}
		}
	}
	switch {
	case rule == exitAny && failed > 0, rule == exitAll && failed == total && total > 0:
		return exitFailure
	}
	return 0
}

func lastCode(c *pod.ContainerStatus) int {
	for _, t := range []*pod.Terminated{c.State.Terminated, c.LastState.Terminated} {
		if t != nil {
			return t.ExitCode
		}
	}
	return exitFailure
}
