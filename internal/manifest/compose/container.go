package compose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/go-units"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// machine is the architecture of this machine, in the words of images.
const machine = runtime.GOARCH

// annotationKey reports whether a text can be the key of an annotation (IsQualifiedName in
// k8s.io/apimachinery/pkg/util/validation).
func annotationKey(key string) bool {
	domain, name, ok := strings.Cut(key, "/")
	if !ok {
		domain, name = "", key
	}
	return len(name) <= api.MaxLabel && regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`).MatchString(name) &&
		(!ok || len(domain) <= 253 && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(domain))
}

// setUser sets the ids. Kubernetes has no names of users: they are options of podrun, which the image resolves.
func (s *service) setUser() {
	uid, gid, both := strings.Cut(s.User, ":")
	user, numeric := number(uid)
	group, alsoNumeric := number(gid)
	switch {
	case s.User == "":
	case numeric && (!both || alsoNumeric):
		s.security.set("runAsUser", &user)
		if both {
			s.security.set("runAsGroup", &group)
		}
	case uid == "" || both && gid == "":
		s.refuse(s.at("user"), "is refused: use USER or USER:GROUP, not %s", s.User)
	default:
		s.setOption("user", s.User)
	}
	var ids []int64
	for _, g := range s.GroupAdd {
		if n, numeric := number(g); numeric {
			ids = append(ids, n)
		}
	}
	switch {
	case len(s.GroupAdd) == 0:
	case len(ids) == len(s.GroupAdd) && len(s.members) == 1:
		s.podSecurity.set("supplementalGroups", ids)
	default:
		s.setOption("groups", strings.Join(s.GroupAdd, ","))
	}
}

// number returns the number of a user or group, if the file has it.
func number(name string) (n int64, ok bool) {
	if name == "root" {
		name = "0"
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil
}

// setUlimits sets limits of processes. A limit above the user's hard limit is lowered: docker's daemon is root, podrun is not.
func (s *service) setUlimits() {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.Ulimits)) {
		if name == "core" {
			s.warn(s.at("ulimits", name), "has no effect: podrun writes no core dumps")
			continue
		}
		u := s.Ulimits[name]
		soft, hard := u.Soft, u.Hard
		if u.Single != 0 {
			soft, hard = u.Single, u.Single
		}
		if most, known := s.host.limit(name); known && (hard < 0 || uint64(hard) > most) {
			s.warn(s.at("ulimits", name), "is lowered to %d, the hard limit of the user here: raise it in /etc/security/limits.conf", most)
			hard = int(most)
			if soft < 0 || soft > hard {
				soft = hard
			}
		}
		list = append(list, fmt.Sprintf("%s=%d:%d", name, soft, hard))
	}
	if len(list) > 0 {
		s.setOption("ulimits", strings.Join(list, ","))
	}
}

func (s *service) setCapabilities() {
	caps := object{}
	caps.set("add", capabilities(s.CapAdd))
	caps.set("drop", capabilities(s.CapDrop))
	s.security.set("capabilities", caps)
	s.security.set("privileged", s.Privileged)
	s.security.set("readOnlyRootFilesystem", s.ReadOnly)
}

// capabilities returns the names without the prefix that Kubernetes does not have.
func capabilities(list []string) []string {
	out := make([]string, len(list))
	for i, name := range list {
		out[i] = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	}
	return out
}

func (s *service) setSecurityOptions() {
	for i, option := range s.SecurityOpt {
		name, value, _ := strings.Cut(strings.Replace(option, "=", ":", 1), ":")
		switch {
		case name == "no-new-privileges" && (value == "" || value == "true"):
			s.security["allowPrivilegeEscalation"] = false
		case name == "no-new-privileges" && value == "false":
		case name == "apparmor" && value == "unconfined":
			s.security["appArmorProfile"] = object{"type": "Unconfined"}
		case name == "apparmor":
			s.security["appArmorProfile"] = object{"type": "Localhost", "localhostProfile": value}
		case name == "seccomp" && value == "unconfined":
			s.security["seccompProfile"] = object{"type": "Unconfined"}
		case name == "label" && value == "disable":
			s.security["seLinuxOptions"] = object{"type": "spc_t"}
		default:
			s.refuse(s.at("security_opt", strconv.Itoa(i)), "is refused: %s has no counterpart; podrun has no-new-privileges, apparmor, seccomp:unconfined and label:disable", option)
		}
	}
}

// defaultPeriod is the kernel's period of cpu_quota, in microseconds.
const defaultPeriod = 100_000

// setResources sets limits and requests. deploy.resources has precedence over the attributes of older versions.
func (s *service) setResources() {
	limits, requests := object{}, object{}
	limits.set("cpu", cpu(float32(s.CPUQuota)/float32(cmp.Or(s.CPUPeriod, defaultPeriod))))
	limits.set("cpu", cpu(s.CPUS))
	limits.set("memory", bytesOf(s.MemLimit))
	limits.set("pids", max(0, s.PidsLimit)) // -1 is no limit
	requests.set("memory", bytesOf(s.MemReservation))
	if s.Deploy != nil {
		if l := s.Deploy.Resources.Limits; l != nil {
			limits.set("cpu", cpu(l.NanoCPUs.Value()))
			limits.set("memory", bytesOf(l.MemoryBytes))
			limits.set("pids", max(0, l.Pids))
		}
		if r := s.Deploy.Resources.Reservations; r != nil {
			requests.set("cpu", cpu(r.NanoCPUs.Value()))
			requests.set("memory", bytesOf(r.MemoryBytes))
			s.setDeviceRequests(r.Devices)
		}
	}
	if s.MemSwapLimit != 0 && bytesOf(s.MemSwapLimit) != limits["memory"] {
		s.warn(s.at("memswap_limit"), "has no effect: a container with a limit of memory never swaps")
	}
	resources := object{}
	resources.set("limits", limits)
	resources.set("requests", requests)
	s.container.set("resources", resources)
	if s.ShmSize > 0 {
		s.mount("/dev/shm", object{"emptyDir": object{"medium": "Memory", "sizeLimit": bytesOf(s.ShmSize)}}, object{})
	}
}

// cpu returns a number of processors as a quantity; "" for 0.
func cpu(n float32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(max(1, int(math.Round(float64(n)*1000)))) + "m"
}

// bytesOf returns a size as a quantity; "" for 0.
func bytesOf(n types.UnitBytes) string {
	switch {
	case n <= 0:
		return ""
	case n%(1<<30) == 0:
		return fmt.Sprintf("%dGi", n>>30)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMi", n>>20)
	}
	return strconv.FormatInt(int64(n), 10)
}

// setDeviceRequests requests devices by their CDI names.
func (s *service) setDeviceRequests(list []types.DeviceRequest) {
	for _, d := range list {
		switch {
		case d.Driver == "nvidia" && d.Count == -1:
			s.addDevice("nvidia.com/gpu=all")
		case d.Driver == "nvidia" && len(d.IDs) > 0:
			for _, id := range d.IDs {
				s.addDevice("nvidia.com/gpu=" + id)
			}
		case d.Driver == "cdi" && len(d.IDs) > 0:
			for _, id := range d.IDs {
				s.addDevice(id)
			}
		default:
			s.refuse(s.at("deploy", "resources", "reservations", "devices"), "is refused: use the driver nvidia with count: all or device_ids, or the driver cdi with device_ids")
		}
	}
}

// addDevice adds a device by its CDI name.
func (s *service) addDevice(name string) {
	if others, ok := s.annotations[annotationDevices]; ok {
		name = fmt.Sprintf("%s,%s", others, name)
	}
	s.annotations[annotationDevices] = name
}

// setDevices mounts device files, and directories with device files. A missing device is an error when the pod starts.
func (s *service) setDevices() {
	for i, d := range s.Devices {
		if strings.Contains(d.Source, "=") {
			s.addDevice(d.Source)
			continue
		}
		if d.Permissions != "" && d.Permissions != "rwm" {
			s.refuse(s.at("devices", strconv.Itoa(i)), "is refused: the permissions %s have no counterpart: a container may read, write and make the device", d.Permissions)
		}
		kind := "CharDevice"
		if info, err := s.host.stat(d.Source); err == nil && info.IsDir() {
			kind = "Directory"
		} else if err == nil && info.Mode()&os.ModeCharDevice == 0 {
			kind = "BlockDevice"
		}
		s.mount(d.Target, object{"hostPath": object{"path": d.Source, "type": kind}}, object{})
	}
}

// setLogging makes the limits of log files annotations.
func (s *service) setLogging() {
	l := s.Logging
	if l == nil {
		return
	}
	if !slices.Contains([]string{"", "json-file", "local"}, l.Driver) {
		s.refuse(s.at("logging", "driver"), "is refused: podrun writes logs to files, as json-file and local do; it has no driver %s", l.Driver)
	}
	for _, key := range slices.Sorted(maps.Keys(l.Options)) {
		value, keyPath := l.Options[key], s.at("logging", "options", key)
		switch key {
		case "max-size":
			n, err := units.RAMInBytes(value)
			if err != nil {
				s.refuse(keyPath, "%v", err)
			}
			s.annotate(keyPath, annotationLogMaxSize, bytesOf(types.UnitBytes(n)))
		case "max-file":
			s.annotate(keyPath, annotationLogMaxFiles, value)
		case "tag", "compress", "labels", "labels-regex", "env", "env-regex", "mode", "max-buffer-size":
			s.warn(keyPath, "has no effect: podrun has max-size and max-file")
		default:
			s.refuse(keyPath, "is refused: podrun has max-size and max-file")
		}
	}
}
