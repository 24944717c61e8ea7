package podutil

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/pod"
)

// Options of containers that docker has and Kubernetes has no field for. podrun.dev/OPTION is for every container of
// the pod, OPTION.podrun.dev/CONTAINER for one.
const (
	OptionUlimits     = "ulimits"      // nofile=1024:4096,memlock=-1: see ParseUlimits
	OptionUser        = "user"         // a user, or USER:GROUP, by names that the image has
	OptionGroups      = "groups"       // supplementary groups by name or number
	OptionMaxRestarts = "max-restarts" // how often a container that fails is restarted under OnFailure
)

// AnnotationUser is OptionUser for every container of the pod.
const AnnotationUser = optionDomain + "/" + OptionUser

// containerOptions are the options of containers.
var containerOptions = []string{OptionUlimits, OptionUser, OptionGroups, OptionMaxRestarts}

// optionDomain is the domain of podrun's annotations.
const optionDomain = "podrun.dev"

// CutContainerOption splits the key of an annotation that is an option of containers; container is "" if it is for all.
func CutContainerOption(key string) (option, container string, ok bool) {
	domain, name, _ := strings.Cut(key, "/")
	if domain == optionDomain {
		return name, "", slices.Contains(containerOptions, name)
	}
	option, found := strings.CutSuffix(domain, "."+optionDomain)
	return option, name, found && slices.Contains(containerOptions, option)
}

// ContainerOption returns the value of an option for a container, or "".
func ContainerOption(p *corev1.Pod, option, container string) string {
	if value, ok := p.Annotations[option+"."+optionDomain+"/"+container]; ok {
		return value
	}
	return p.Annotations[optionDomain+"/"+option]
}

// CheckContainerOption checks the value of an option. Its error continues the sentence "it …".
func CheckContainerOption(option, value string) (err error) {
	switch option {
	case OptionUlimits:
		_, err = ParseUlimits(value)
	case OptionUser:
		err = checkUser(value)
	case OptionGroups:
		_, err = ParseGroups(value)
	case OptionMaxRestarts:
		_, err = ParseMaxRestarts(value)
	}
	return err
}

// ulimits are the limits of a process that a pod may set, by docker's names. The limit of core dumps is not among
// them: podrun keeps dumps from programs of the host.
var ulimits = []string{"as", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"}

// ParseUlimits reads a list of NAME=SOFT:HARD, or NAME=BOTH; -1 is no limit.
func ParseUlimits(value string) (list []pod.Ulimit, err error) {
	for word := range strings.SplitSeq(value, ",") {
		name, limits, _ := strings.Cut(strings.TrimSpace(word), "=")
		if !slices.Contains(ulimits, name) {
			return nil, fmt.Errorf("must be a list as in nofile=1024:4096,memlock=-1 of %s", strings.Join(ulimits, ", "))
		}
		soft, hard, both := strings.Cut(limits, ":")
		if !both {
			hard = soft
		}
		u := pod.Ulimit{Name: name}
		if u.Soft, err = parseUlimit(soft); err == nil {
			u.Hard, err = parseUlimit(hard)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("must have numbers for %s, as in %[1]s=1024:4096; -1 is no limit", name)
		case u.Soft > u.Hard:
			return nil, fmt.Errorf("must have a soft limit for %s that is not above the hard one", name)
		case slices.ContainsFunc(list, func(other pod.Ulimit) bool { return other.Name == name }):
			return nil, fmt.Errorf("must have %s once", name)
		}
		list = append(list, u)
	}
	return list, nil
}

func parseUlimit(text string) (uint64, error) {
	if text == "-1" {
		return math.MaxUint64, nil
	}
	return strconv.ParseUint(text, 10, 63)
}

// checkUser checks a user and a group by name or number.
func checkUser(value string) error {
	user, group, both := strings.Cut(value, ":")
	if !isAccount(user) || both && !isAccount(group) {
		return errors.New("must be a user, or USER:GROUP, by names or numbers of the image")
	}
	return nil
}

// isAccount reports whether a text can be the name or the number of a user or group in passwd(5) and group(5).
func isAccount(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ':' || r == ',' })
}

// ParseGroups reads a list of groups.
func ParseGroups(value string) ([]string, error) {
	list := strings.Split(value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		if !isAccount(list[i]) {
			return nil, errors.New("must be a list of groups by name or number, as in video,render,44")
		}
	}
	return list, nil
}

// ParseMaxRestarts reads a number of restarts.
func ParseMaxRestarts(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, errors.New("must be a number from 1 on")
	}
	return n, nil
}

// ParseHostNames reads a list of names.
func ParseHostNames(value string) ([]string, error) {
	list := strings.Split(value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		if len(validation.IsDNS1123Subdomain(strings.ToLower(list[i]))) > 0 {
			return nil, errors.New("must be a list of DNS names, as in host.docker.internal,gateway")
		}
	}
	return list, nil
}

// ParseNames reads the further names of a Service, and returns them in lower case, as names of DNS are compared.
func ParseNames(value string) ([]string, error) {
	list := strings.Split(strings.ToLower(value), ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		for label := range strings.SplitSeq(list[i], ".") {
			if label == "" || len(label) > validation.DNS1123LabelMaxLength || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				return nil, errors.New("must be a list of names of letters, digits, -, _ and ., as in my_db,Shop.DB")
			}
		}
		if len(list[i]) > maxName {
			return nil, fmt.Errorf("must have names of at most %d characters", maxName)
		}
	}
	return list, nil
}

// maxName is the maximum length of a further name of a Service: DNS has 253 characters for it and the domain.
const maxName = 128

// ParseDNSServers reads a list of addresses. The pod's loopback is not reached from where the resolver is, and the
// host's is not the pod's business.
func ParseDNSServers(value string) ([]string, error) {
	list := strings.Split(value, ",")
	for i := range list {
		a, err := netip.ParseAddr(strings.TrimSpace(list[i]))
		if err != nil || a.IsLoopback() || a.IsUnspecified() || a.Zone() != "" {
			return nil, errors.New("must be a list of addresses of name servers, as in 192.168.1.1,9.9.9.9, none of them a loopback address")
		}
		list[i] = a.String()
	}
	return list, nil
}
