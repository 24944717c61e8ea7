package compose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// Annotations of podrun. Package podutil explains them; it is not imported because it links the types of Kubernetes.
const (
	annotationStartAfter  = "podrun.dev/start-after"
	annotationNetwork     = "podrun.dev/network"
	annotationLogMaxSize  = "podrun.dev/log-max-size"
	annotationLogMaxFiles = "podrun.dev/log-max-files"
	annotationNames       = "podrun.dev/names"
	annotationLabels      = "podrun.dev/labels"
	annotationHostNames   = "podrun.dev/host-names"
	annotationLoopback    = "podrun.dev/host-loopback"
	annotationDNSServers  = "podrun.dev/dns-servers"
	annotationNetSysctls  = "podrun.dev/net-sysctls"
	annotationFreePorts   = "podrun.dev/free-host-ports"
	annotationOrder       = "apps.kruise.io/container-launch-priority"
	annotationDevices     = "cdi.k8s.io/devices"
)

// convert makes the objects of the project: first what pods refer to.
func (c *converter) convert() {
	c.checkNetworks()
	c.claims()
	c.objectsOfFiles()
	c.claimNames()
	c.group()
	for _, name := range c.project.ServiceNames() {
		c.names(c.project.Services[name])
		c.policy(c.project.Services[name])
	}
	for _, name := range c.project.ServiceNames() {
		if c.pods[name] != nil {
			c.addPod(name)
		}
	}
	c.checkAddresses()
}

// service is a service while its container is made.
type service struct {
	*converter
	types.ServiceConfig
	*podTemplate

	container object
	security  object // securityContext of the container
	mounts    []object
}

// at returns the path of an attribute of the service.
func (s *service) at(path ...string) []string { return append([]string{"services", s.Name}, path...) }

// podNames returns the names of the pods of a service.
func podNames(s types.ServiceConfig) []string {
	n := s.GetScale()
	if s.Deploy != nil && s.Deploy.Mode == "global" {
		n = 1
	}
	if n == 1 {
		return []string{api.Label(s.Name)}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%.58s-%d", api.Label(s.Name), i+1)
	}
	return names
}

// setLabels makes annotations of the labels, because Kubernetes restricts the values of labels. A label whose key no
// annotation can have is kept in annotationLabels.
func (s *service) setLabels() {
	for _, attribute := range []string{"labels", "annotations"} {
		list := map[string]map[string]string{"labels": s.Labels, "annotations": s.Annotations}[attribute]
		for _, key := range slices.Sorted(maps.Keys(list)) {
			if annotationKey(key) {
				s.annotate(s.at(attribute, key), key, list[key])
			} else {
				s.labels[key] = list[key]
			}
		}
	}
	if m := s.Deploy; m != nil && m.Mode != "" && m.Mode != "replicated" && m.Mode != "global" {
		s.refuse(s.at("deploy", "mode"), "is refused: use replicated, or a Job of Kubernetes")
	}
}

// setCommand sets entrypoint, command and working_dir. An entry point without a command clears the image's
// command, with docker and with Kubernetes.
func (s *service) setCommand() {
	switch {
	case s.Entrypoint != nil && len(s.Entrypoint) == 0 && len(s.Command) == 0:
		s.refuse(s.at("entrypoint"), "cannot be empty without command: name the program")
	case len(s.Entrypoint) == 0 && s.Entrypoint != nil:
		s.container.set("command", literals(s.Command))
	case s.Command != nil && len(s.Command) == 0 && len(s.Entrypoint) == 0:
		s.refuse(s.at("command"), "cannot be empty without entrypoint: Kubernetes would use the image's")
	default:
		s.container.set("command", literals(s.Entrypoint))
		s.container.set("args", literals(s.Command))
	}
	s.container.set("workingDir", s.WorkingDir)
	s.container.set("stdin", s.StdinOpen)
	s.container.set("tty", s.Tty)
}

func (s *service) setEnvironment() {
	var env []object
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		if value := s.Environment[name]; value != nil { // a variable without a value is not set on the host either
			env = append(env, object{"name": name, "value": literal(*value)})
		}
	}
	s.container.set("env", env)
}

// pullPolicies are the policies of Kubernetes. The default of Compose does not depend on the tag.
var pullPolicies = map[string]string{
	"": "IfNotPresent", types.PullPolicyMissing: "IfNotPresent", types.PullPolicyAlways: "Always", types.PullPolicyNever: "Never", types.PullPolicyBuild: "IfNotPresent",
}

func (s *service) setImage() {
	policy, ok := pullPolicies[s.PullPolicy]
	if !ok {
		s.refuse(s.at("pull_policy"), "is refused: use always, never, missing or build, not %s; podrun update pulls new images", s.PullPolicy)
	}
	if s.Build != nil && strings.HasPrefix(s.Image, "localhost/") {
		policy = "Never" // no registry has it
	}
	s.container.set("imagePullPolicy", policy)
	if s.Platform == "" {
		return
	}
	if os, arch, _ := strings.Cut(s.Platform, "/"); os != "linux" || arch != "" && arch != machine && !strings.HasPrefix(arch, machine+"/") {
		s.refuse(s.at("platform"), "is refused: this machine runs linux/%s, not %s", machine, s.Platform)
	}
}

// setStop sets the signal and the grace period, whose defaults are the same as in Compose.
func (s *service) setStop() {
	grace := 10
	if s.StopGracePeriod != nil {
		grace = seconds(*s.StopGracePeriod, 0)
	}
	if longest, set := s.spec["terminationGracePeriodSeconds"].(int); set { // a pod has one
		grace = max(grace, longest)
	}
	s.spec["terminationGracePeriodSeconds"] = grace
	if s.StopSignal == "" {
		return
	}
	signal := strings.ToUpper(s.StopSignal)
	if signal[0] >= '0' && signal[0] <= '9' {
		s.refuse(s.at("stop_signal"), "is refused: name the signal, as in SIGINT")
	}
	s.container["lifecycle"] = object{"stopSignal": "SIG" + strings.TrimPrefix(signal, "SIG")}
	s.spec["os"] = object{"name": "linux"}
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d types.Duration, atLeast int) int {
	return max(atLeast, int((time.Duration(d)+time.Second-1)/time.Second))
}

// restartPolicies are the policies of Kubernetes for Compose's, by restart and by the condition of
// deploy.restart_policy.
var restartPolicies = map[string]string{
	"": "Never", "no": "Never", "none": "Never",
	"on-failure": "OnFailure",
	"always":     "Always", "unless-stopped": "Always", "any": "Always",
}

// setRestart sets the policy of the pod, or of the container if another service of the pod has another one.
func (s *service) setRestart() {
	word, keyPath := s.Restart, s.at("restart")
	word, attempts, limited := strings.Cut(word, ":")
	if d := s.Deploy; d != nil && d.RestartPolicy != nil {
		keyPath = s.at("deploy", "restart_policy", "condition")
		if word, limited = d.RestartPolicy.Condition, d.RestartPolicy.MaxAttempts != nil; word == "" {
			word = "any"
		}
		if limited {
			attempts = strconv.FormatUint(*d.RestartPolicy.MaxAttempts, 10)
		}
	}
	policy, ok := restartPolicies[word]
	n, err := strconv.ParseUint(attempts, 10, 31)
	switch {
	case !ok || limited && err != nil:
		s.refuse(keyPath, "is refused: use no, on-failure, on-failure:N, always or unless-stopped, not %s", word)
	case limited && policy != "OnFailure":
		s.warn(keyPath, "has no limit of attempts: docker has one for on-failure only")
	case n > 0: // 0 is no limit
		s.setOption("max-restarts", attempts)
	}
	if s.spec["restartPolicy"] == nil {
		s.spec.set("restartPolicy", policy)
	} else if s.spec["restartPolicy"] != policy {
		s.container.set("restartPolicy", policy)
	}
}

// Defaults of a health check (compose specification, healthcheck).
const (
	healthInterval = 30
	healthTimeout  = 30
	healthRetries  = 3
)

// setHealthcheck makes a readiness probe: a container that is not healthy is not restarted by Compose.
func (s *service) setHealthcheck() {
	h := s.HealthCheck
	if !hasHealthcheck(h) {
		if h != nil && len(h.Test) == 0 && !h.Disable {
			s.warn(s.at("healthcheck"), "has no effect without test: podrun does not read the HEALTHCHECK of an image")
		}
		return
	}
	var command []string
	switch {
	case h.Test[0] == "CMD":
		command = h.Test[1:]
	case h.Test[0] == "CMD-SHELL":
		command = []string{"/bin/sh", "-c", strings.Join(h.Test[1:], " ")}
	}
	interval, retries := intervalAndRetries(h)
	probe := object{"exec": object{"command": command}, "periodSeconds": interval, "timeoutSeconds": healthTimeout, "failureThreshold": retries}
	if h.Timeout != nil && *h.Timeout > 0 {
		probe["timeoutSeconds"] = seconds(*h.Timeout, 1)
	}
	s.container["readinessProbe"] = probe
}

// hasHealthcheck reports whether a service has a health check in the file.
func hasHealthcheck(h *types.HealthCheckConfig) bool {
	return h != nil && !h.Disable && len(h.Test) > 0 && h.Test[0] != "NONE"
}

// intervalAndRetries returns the seconds between two health checks, and how many must fail in a row.
func intervalAndRetries(h *types.HealthCheckConfig) (interval, retries int) {
	interval, retries = healthInterval, healthRetries
	if h.Interval != nil && *h.Interval > 0 {
		interval = seconds(*h.Interval, 1)
	}
	if h.Retries != nil && *h.Retries > 0 {
		retries = int(min(*h.Retries, math.MaxInt32))
	}
	return interval, retries
}

// startGrace returns how long failed health checks do not make a service unhealthy, in the form of the annotation: the
// start period, in which failures do not count, plus the time that retries failures in a row take.
func startGrace(h *types.HealthCheckConfig) string {
	if h.StartPeriod == nil || *h.StartPeriod <= 0 {
		return ""
	}
	interval, retries := intervalAndRetries(h)
	return fmt.Sprintf(":%ds", seconds(*h.StartPeriod, 0)+interval*retries)
}

// conditions maps the conditions of depends_on to the states that the annotation has.
var conditions = map[string]string{
	types.ServiceConditionStarted:               "Running",
	types.ServiceConditionHealthy:               "Healthy",
	types.ServiceConditionCompletedSuccessfully: "Succeeded",
}

// setDependencies makes the annotation that orders the start of pods, and the one that orders the containers of a pod.
func (s *service) setDependencies() {
	for _, name := range slices.Sorted(maps.Keys(s.DependsOn)) {
		other, active := s.project.Services[name]
		if !active {
			continue // of a profile that is not active, and not required: the library has checked that
		}
		condition := s.DependsOn[name].Condition
		if condition == types.ServiceConditionHealthy && !hasHealthcheck(other.HealthCheck) {
			s.refuse(s.at("depends_on", name), "is refused: service_healthy requires a healthcheck of %s in the file; podrun does not read the healthcheck of an image", name)
		}
		first := s.firstOf(name)
		if condition == types.ServiceConditionCompletedSuccessfully && len(s.converter.pods[first]) > 1 {
			s.refuse(s.at("depends_on", name), "is refused: service_completed_successfully of %s, whose pod other services share by network_mode: it ends when all of them do", name)
		}
		if first == s.first.Name {
			if condition == types.ServiceConditionHealthy {
				s.annotations[annotationOrder] = "Ordered" // containers are in the order of their dependencies
			}
			continue
		}
		state := conditions[condition]
		if condition == types.ServiceConditionHealthy {
			state += startGrace(other.HealthCheck)
		}
		for _, pod := range s.podsOf(name) {
			if after := pod + "=" + state; !slices.Contains(s.after, after) {
				s.after = append(s.after, after)
			}
		}
	}
}
