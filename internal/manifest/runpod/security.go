package runpod

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// user sets the ids, UID[:GID], or the names, USER[:GROUP], which the image has.
func (c *Container) user(value string) error {
	user, group, grouped := strings.Cut(value, ":")
	uid, err := strconv.ParseInt(user, 10, 64)
	gid, groupErr := strconv.ParseInt(group, 10, 64)
	if err != nil || grouped && groupErr != nil {
		return c.option(podutil.OptionUser, value)
	}
	c.security().RunAsUser = &uid
	if grouped {
		c.security().RunAsGroup = &gid
	}
	return nil
}

// option sets an annotation of podrun for the container.
func (c *Container) option(name, value string) error {
	if err := podutil.CheckContainerOption(name, value); err != nil {
		return fmt.Errorf("it %w", err)
	}
	c.pod.annotate(name+".podrun.dev/"+c.Name, value)
	return nil
}

// addOption adds a word to the list of an annotation of podrun for the container.
func (c *Container) addOption(name, word string) error {
	if list := c.pod.Annotations[name+".podrun.dev/"+c.Name]; list != "" {
		word = list + "," + word
	}
	return c.option(name, word)
}

// groupAdd adds a supplementary group by its number or its name in the image.
func (c *Container) groupAdd(value string) error { return c.addOption(podutil.OptionGroups, value) }

func (c *Container) capAdd(value string) error {
	list := c.capabilities()
	list.Add = append(list.Add, capability(value))
	return nil
}

func (c *Container) capDrop(value string) error {
	list := c.capabilities()
	list.Drop = append(list.Drop, capability(value))
	return nil
}

func (c *Container) capabilities() *corev1.Capabilities {
	s := c.security()
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{}
	}
	return s.Capabilities
}

// capability returns a name without the prefix that Kubernetes does not have.
func capability(name string) corev1.Capability {
	return corev1.Capability(strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
}

func (c *Container) privileged(value string) error {
	on, err := boolean(value)
	if on {
		c.security().Privileged = &on
	}
	return err
}

func (c *Container) readOnly(value string) error {
	on, err := boolean(value)
	if on {
		c.security().ReadOnlyRootFilesystem = &on
	}
	return err
}

// boolean parses the value of an option that may have none; "" is true.
func boolean(value string) (bool, error) {
	switch value {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf("use true or false, not %q", value)
}

// securityOpt sets an option of --security-opt, NAME=VALUE or NAME:VALUE.
func (c *Container) securityOpt(option string) error {
	name, value, _ := strings.Cut(strings.Replace(option, "=", ":", 1), ":")
	s := c.security()
	switch {
	case name == "no-new-privileges" && (value == "" || value == "true"):
		s.AllowPrivilegeEscalation = new(false)
	case name == "no-new-privileges" && value == "false":
	case name == "apparmor" && value == "unconfined":
		s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case name == "apparmor" && value != "":
		s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &value}
	case name == "seccomp" && value == "unconfined":
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	case name == "seccomp" && strings.HasPrefix(value, "/"):
		return errors.New("copy the file below ~/.local/share/podrun/seccomp, for root /var/lib/podrun/seccomp, and name it relative to that")
	case name == "seccomp" && value != "":
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &value}
	case name == "label":
		return c.seLinux(value)
	default:
		return errors.New("podrun has no-new-privileges, apparmor=PROFILE, seccomp=unconfined, seccomp=FILE, label=disable, label=type:TYPE and label=level:LEVEL")
	}
	return nil
}

// seLinux sets a part of the label of SELinux.
func (c *Container) seLinux(value string) error {
	s := c.security()
	if s.SELinuxOptions == nil {
		s.SELinuxOptions = &corev1.SELinuxOptions{}
	}
	part, value, _ := strings.Cut(value, ":")
	switch {
	case part == "disable":
		s.SELinuxOptions.Type = "spc_t"
	case part == "type" && value != "":
		s.SELinuxOptions.Type = value
	case part == "level" && value != "":
		s.SELinuxOptions.Level = value
	case part == "user" && value != "":
		s.SELinuxOptions.User = value
	case part == "role" && value != "":
		s.SELinuxOptions.Role = value
	default:
		return errors.New("podrun has label=disable, and label= with user, role, type and level")
	}
	return nil
}

// sysctl sets a kernel parameter of the Pod, NAME=VALUE.
func (c *Container) sysctl(word string) error {
	name, value, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return errors.New("use NAME=VALUE")
	}
	s := c.pod.podSecurity()
	s.Sysctls = slices.DeleteFunc(s.Sysctls, func(old corev1.Sysctl) bool { return old.Name == name })
	s.Sysctls = append(s.Sysctls, corev1.Sysctl{Name: name, Value: value})
	if strings.HasPrefix(name, "net.") {
		c.pod.annotate(podutil.AnnotationNetSysctls, "true")
	}
	return nil
}

// ulimit sets a limit of processes, NAME=SOFT[:HARD].
func (c *Container) ulimit(value string) error {
	if value == "host" {
		return errors.New("name the limits, as in nofile=1024:4096")
	}
	return c.addOption(podutil.OptionUlimits, value)
}

// init lets the pod's first process adopt and reap orphans, as the init process of docker and podman does.
func (c *Container) init(value string) error {
	on, err := boolean(value)
	if on {
		c.pod.Spec.ShareProcessNamespace = &on
	}
	return err
}
