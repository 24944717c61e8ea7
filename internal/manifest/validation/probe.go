package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateProbesAndHooks checks the probes and hooks of an app container or a sidecar.
func validateProbesAndHooks(c *corev1.Container, s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	grace := s.TerminationGracePeriodSeconds
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if p.probe == nil {
			continue
		}
		fieldPath := path.Child(p.name)
		errs = append(errs, validateProbe(p.probe, grace, fieldPath)...)
		switch {
		case p.name != "readinessProbe" && p.probe.SuccessThreshold != 1:
			errs = append(errs, field.Invalid(fieldPath.Child("successThreshold"), p.probe.SuccessThreshold, "must be 1"))
		case p.name == "readinessProbe" && p.probe.TerminationGracePeriodSeconds != nil:
			errs = append(errs, field.Invalid(fieldPath.Child("terminationGracePeriodSeconds"), p.probe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
		}
	}
	l := c.Lifecycle
	if l == nil {
		return errs
	}
	fieldPath := path.Child("lifecycle")
	if l.PostStart != nil {
		errs = append(errs, validateHook(l.PostStart, grace, fieldPath.Child("postStart"))...)
	}
	if l.PreStop != nil {
		errs = append(errs, validateHook(l.PreStop, grace, fieldPath.Child("preStop"))...)
	}
	if l.StopSignal != nil {
		errs = append(errs, validateStopSignal(*l.StopSignal, s.OS, fieldPath.Child("stopSignal"))...)
	}
	return errs
}

func validateProbe(p *corev1.Probe, grace *int64, path *field.Path) field.ErrorList {
	errs := validateHandler(handler{exec: p.Exec, http: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC}, grace, path)
	for _, f := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds}, {"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold}, {"failureThreshold", p.FailureThreshold},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(f.value), path.Child(f.name))...)
	}
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
	}
	return errs
}

func validateHook(h *corev1.LifecycleHandler, grace *int64, path *field.Path) field.ErrorList {
	return validateHandler(handler{exec: h.Exec, http: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep}, grace, path)
}

// handler is the common part of a probe and a hook.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func validateHandler(h handler, grace *int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	checkHandler := func(name string, set bool, check func(*field.Path) field.ErrorList) {
		if !set {
			return
		}
		if n++; n > 1 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 handler type"))
			return
		}
		errs = append(errs, check(path.Child(name))...)
	}
	checkHandler("exec", h.exec != nil, func(fieldPath *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(fieldPath.Child("command"), "")}
		}
		var errs field.ErrorList
		for i, arg := range h.exec.Command {
			errs = append(errs, validateNoNUL(arg, fieldPath.Child("command").Index(i))...)
		}
		return errs
	})
	checkHandler("httpGet", h.http != nil, func(fieldPath *field.Path) field.ErrorList { return validateHTTPGet(h.http, fieldPath) })
	checkHandler("tcpSocket", h.tcp != nil, func(fieldPath *field.Path) field.ErrorList {
		return validatePortOrName(h.tcp.Port, fieldPath.Child("port"))
	})
	checkHandler("grpc", h.grpc != nil, func(fieldPath *field.Path) field.ErrorList {
		errs := validatePort(h.grpc.Port, fieldPath.Child("port"))
		return append(errs, enumerated(ptr.Deref(h.grpc.Mode, corev1.GRPCProbeModePlaintext), fieldPath.Child("mode"), corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS)...)
	})
	checkHandler("sleep", h.sleep != nil, func(fieldPath *field.Path) field.ErrorList {
		if grace != nil && (h.sleep.Seconds < 0 || h.sleep.Seconds > *grace) {
			return field.ErrorList{field.Invalid(fieldPath, h.sleep.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))}
		}
		return nil
	})
	if n == 0 {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(h *corev1.HTTPGetAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, validatePortOrName(h.Port, path.Child("port"))...)
	errs = append(errs, enumerated(h.Scheme, path.Child("scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for _, header := range h.HTTPHeaders {
		errs = append(errs, checkRule(header.Name, path.Child("httpHeaders"), validation.IsHTTPHeaderName)...)
	}
	protocol := ptr.Deref(h.Protocol, corev1.HTTPProtocolHTTP1)
	errs = append(errs, enumerated(protocol, path.Child("protocol"), corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2)...)
	switch {
	case protocol == corev1.HTTPProtocolHTTP2 && h.Scheme != corev1.URISchemeHTTP:
		errs = append(errs, field.Invalid(path.Child("protocol"), protocol, "is only supported with HTTP (H2C)"))
	case protocol == corev1.HTTPProtocolHTTP2 && h.Host != "":
		errs = append(errs, field.Invalid(path.Child("host"), h.Host, `must be empty when `+"`protocol`"+` is "HTTP2"`))
	}
	return errs
}

func validatePortOrName(p intstr.IntOrString, path *field.Path) field.ErrorList {
	if p.Type == intstr.Int {
		return validatePort(p.IntVal, path)
	}
	return checkRule(p.StrVal, path, validation.IsValidPortName)
}

// stopSignals returns the API's signals for Linux.
func stopSignals() []corev1.Signal {
	list := []corev1.Signal{
		corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE, corev1.SIGHUP,
		corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE, corev1.SIGPOLL, corev1.SIGPROF,
		corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP, corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP,
		corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG, corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM, corev1.SIGWINCH,
		corev1.SIGXCPU, corev1.SIGXFSZ, corev1.SIGRTMIN, corev1.SIGRTMAX,
	}
	for i := 1; i <= 15; i++ {
		list = append(list, corev1.Signal(fmt.Sprintf("SIGRTMIN+%d", i)))
		if i < 15 {
			list = append(list, corev1.Signal(fmt.Sprintf("SIGRTMAX-%d", i)))
		}
	}
	slices.Sort(list)
	return list
}

func validateStopSignal(signal corev1.Signal, os *corev1.PodOS, path *field.Path) field.ErrorList {
	switch {
	case os == nil:
		return field.ErrorList{field.Forbidden(path, "may not be set for containers with empty `spec.os.name`")}
	case os.Name == corev1.Linux && !slices.Contains(stopSignals(), signal):
		return field.ErrorList{field.NotSupported(path, signal, stopSignals())}
	}
	return nil
}
