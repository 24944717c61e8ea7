package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The API's limits of a container's restart rules.
const (
	maxRestartRules = 20
	maxRestartCodes = 255
)

// validateRestart checks a container's own policy and rules. Of an init container
// without a policy the rules are not looked at.
func validateRestart(c *corev1.Container, init bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at, rules := path.Child("restartPolicy"), path.Child("restartPolicyRules")
	switch {
	case c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0:
		errs = append(errs, field.Required(at, "must specify restartPolicy when restart rules are used"))
		if init {
			return errs
		}
	case c.RestartPolicy == nil:
		return nil
	default:
		errs = append(errs, enumerated(*c.RestartPolicy, at, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	}
	if n := len(c.RestartPolicyRules); n > maxRestartRules {
		errs = append(errs, field.TooMany(rules, n, maxRestartRules))
	}
	for i, r := range c.RestartPolicyRules {
		at := rules.Index(i)
		errs = append(errs, enumerated(r.Action, at.Child("action"), corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		if r.ExitCodes == nil {
			errs = append(errs, field.Required(at.Child("exitCodes"), "must be specified"))
			continue
		}
		at = at.Child("exitCodes")
		errs = append(errs, enumerated(r.ExitCodes.Operator, at.Child("operator"), corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(r.ExitCodes.Values); n > maxRestartCodes {
			errs = append(errs, field.TooMany(at.Child("values"), n, maxRestartCodes))
		}
	}
	return errs
}

// enumerated checks an enumeration of which the empty value is no value.
func enumerated[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.NotSupported(path, value, supported)}
	}
	return oneOf(value, path, supported...)
}
