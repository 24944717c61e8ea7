package runpod

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// health are the options of a container's health check. A zero value is not set.
type health struct {
	command, startup                 []string
	interval, timeout, startPeriod   time.Duration
	startupInterval, startupTimeout  time.Duration
	retries, startupRetries          int32
	onFailure                        string
	startupGiven, checkGiven, isNone bool
}

// The defaults of docker and podman.
const (
	healthPeriod  = 30 * time.Second
	healthRetries = int32(3)
)

func (c *Container) healthCmd(value string) (err error) {
	c.health.command, err = checkCommand(value)
	c.health.isNone = value == "none"
	return err
}

func (c *Container) startupCmd(value string) (err error) {
	c.health.startup, err = checkCommand(value)
	return err
}

// checkCommand returns the words of a check: a line for the shell, or podman's list in JSON, which may begin with
// CMD or CMD-SHELL. "none" is no check.
func checkCommand(value string) ([]string, error) {
	var list []string
	switch {
	case value == "none":
		return nil, nil
	case value == "":
		return nil, errors.New("name the command")
	case !strings.HasPrefix(value, "[") || json.Unmarshal([]byte(value), &list) != nil || len(list) == 0:
		line := strings.TrimPrefix(strings.TrimPrefix(value, "CMD-SHELL "), "CMD ")
		return []string{"/bin/sh", "-c", line}, nil
	case list[0] == "NONE":
		return nil, nil
	case list[0] == "CMD-SHELL":
		return []string{"/bin/sh", "-c", strings.Join(list[1:], " ")}, nil
	case list[0] == "CMD":
		list = list[1:]
	}
	if len(list) == 0 {
		return nil, errors.New("name the command")
	}
	return list, nil
}

// duration parses docker's durations; a number without a unit is in seconds.
func duration(value string, into *time.Duration, given *bool) error {
	d, err := time.ParseDuration(value)
	if n, isNumber := strconv.ParseUint(value, 10, 31); isNumber == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no duration: use 30s or 1m30s", value)
	}
	*into, *given = d, true
	return nil
}

// count parses a number of checks.
func count(value string, into *int32, given *bool) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number", value)
	}
	*into, *given = int32(n), true
	return nil
}

func (c *Container) healthInterval(value string) error {
	return duration(value, &c.health.interval, &c.health.checkGiven)
}

func (c *Container) healthTimeout(value string) error {
	return duration(value, &c.health.timeout, &c.health.checkGiven)
}

func (c *Container) healthStartPeriod(value string) error {
	return duration(value, &c.health.startPeriod, &c.health.checkGiven)
}

func (c *Container) healthRetries(value string) error {
	return count(value, &c.health.retries, &c.health.checkGiven)
}

func (c *Container) startupInterval(value string) error {
	return duration(value, &c.health.startupInterval, &c.health.startupGiven)
}

func (c *Container) startupTimeout(value string) error {
	return duration(value, &c.health.startupTimeout, &c.health.startupGiven)
}

func (c *Container) startupRetries(value string) error {
	return count(value, &c.health.startupRetries, &c.health.startupGiven)
}

// startupSuccess accepts 0 and 1: a startup probe of Kubernetes needs one success.
func (c *Container) startupSuccess(value string) error {
	if value != "0" && value != "1" {
		return errors.New("one success is enough for a startup probe of Kubernetes: omit it")
	}
	return nil
}

// healthOnFailure sets what happens to an unhealthy container, in podman's words.
func (c *Container) healthOnFailure(value string) error {
	switch value {
	case "none", "kill", "stop":
		c.health.onFailure = value
		return nil
	case "restart":
		return errors.New("use kill, with a policy of restarts")
	}
	return errors.New("use none, kill or stop")
}

// noHealthcheck has no effect: podrun runs no check of an image.
func (c *Container) noHealthcheck(value string) error {
	on, err := boolean(value)
	c.health.isNone = c.health.isNone || on
	return err
}

// finishHealth makes the probes. A check is a readiness probe. If a failed check ends the container, it is also a liveness
// probe, which begins after the start period.
func (c *Container) finishHealth() error {
	h := &c.health
	switch {
	case h.isNone && h.command != nil:
		return errors.New("a health check and no-healthcheck are mutually exclusive")
	case h.isNone:
		return nil
	case h.command == nil && (h.checkGiven || h.onFailure != "" || h.startup != nil || h.startupGiven):
		return errors.New("the health options require a health command: podrun does not read the HEALTHCHECK of an image")
	case h.startup == nil && h.startupGiven:
		return errors.New("the options of a startup check require its command")
	case h.command == nil:
		return nil
	}
	check := probe(h.command, h.interval, h.timeout, h.retries)
	c.ReadinessProbe = check
	if h.startup != nil {
		c.StartupProbe = probe(h.startup, h.startupInterval, h.startupTimeout, h.startupRetries)
	}
	if h.onFailure != "kill" && h.onFailure != "stop" {
		return nil
	}
	c.LivenessProbe = check.DeepCopy()
	if c.StartupProbe == nil && h.startPeriod > 0 {
		c.StartupProbe = check.DeepCopy()
		c.StartupProbe.FailureThreshold += (seconds(h.startPeriod) + check.PeriodSeconds - 1) / check.PeriodSeconds
	}
	return nil
}

// probe returns a probe that runs a command; zero values are the defaults.
func probe(command []string, interval, timeout time.Duration, retries int32) *corev1.Probe {
	if interval == 0 {
		interval = healthPeriod
	}
	if timeout == 0 {
		timeout = healthPeriod
	}
	if retries == 0 {
		retries = healthRetries
	}
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: literals(command)}},
		PeriodSeconds: seconds(interval), TimeoutSeconds: seconds(timeout), FailureThreshold: retries,
	}
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int32 { return max(1, int32((d+time.Second-1)/time.Second)) }
