package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// capabilities returns a container's set, as CAP_…, sorted. As in containerd, ALL is applied before names,
// and added ones before dropped ones, so that {drop: [ALL], add: [CHOWN]} leaves CHOWN.
func capabilities(sc *corev1.SecurityContext) []string {
	set := sets.New(podutil.DefaultCapabilities...)
	if ptr.Deref(sc.Privileged, false) { // then nothing is added or dropped, as in containerd
		set = podutil.AllCapabilities.Clone()
	} else if sc.Capabilities != nil {
		add, drop := upperCapabilities(sc.Capabilities.Add), upperCapabilities(sc.Capabilities.Drop)
		if add.Has("ALL") {
			set = podutil.AllCapabilities.Clone()
		}
		if drop.Has("ALL") {
			set = sets.New[string]()
		}
		set = set.Union(add).Difference(drop).Delete("ALL")
	}
	list := sets.List(set)
	for i := range list {
		list[i] = "CAP_" + list[i]
	}
	return list
}

// hasExtraPrivileges reports whether a container has more privileges in its user namespace than others: it
// must not share the user namespace of the user's other pods.
func hasExtraPrivileges(c pod.Container) bool {
	return c.SeccompUnconfined || slices.ContainsFunc(c.Capabilities, func(name string) bool {
		return !slices.Contains(podutil.DefaultCapabilities, strings.TrimPrefix(name, "CAP_"))
	})
}

func upperCapabilities(list []corev1.Capability) sets.Set[string] {
	set := sets.New[string]()
	for _, c := range list {
		set.Insert(strings.ToUpper(string(c)))
	}
	return set
}

// appArmor returns the Plan's value for a container's profile.
func (b *builder) appArmor() string {
	switch profile := ptr.Deref(podutil.AppArmorProfile(b.pod, b.c), corev1.AppArmorProfile{}); profile.Type {
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return pod.AppArmorDefault
	case corev1.AppArmorProfileTypeLocalhost:
		return ptr.Deref(profile.LocalhostProfile, "")
	}
	return ""
}

// unconfined reports whether the container runs without a seccomp filter: a privileged container has none,
// as with the kubelet's runtimes.
func (b *builder) unconfined() bool {
	profile := podutil.SeccompProfile(b.pod, b.c)
	return ptr.Deref(b.security().Privileged, false) || profile != nil && profile.Type == corev1.SeccompProfileTypeUnconfined
}

// ownSeccomp returns the user's own profile for the container, if any.
func (b *builder) ownSeccomp() json.RawMessage {
	name, ok := podutil.LocalSeccompProfile(b.pod, b.c)
	if !ok || b.unconfined() {
		return nil
	}
	return b.seccomp[name]
}

// user returns the container's user: the manifest's names or numbers, or the image's own text, with the manifest's
// group if it names one.
func (b *builder) user() (string, error) {
	if name := podutil.ContainerOption(b.pod, podutil.OptionUser, b.c.Name); name != "" {
		return name, nil // whether it is root is known when the container is made
	}
	user, group := b.ids()
	if b.nonRoot() {
		if err := b.verifyNonRoot(user); err != nil {
			return "", err
		}
	}
	name := b.image.User
	if user != nil {
		name = strconv.FormatInt(*user, 10)
	}
	if group != nil {
		name, _, _ = strings.Cut(name, ":")
		name = cmp.Or(name, "0") + ":" + strconv.FormatInt(*group, 10)
	}
	return name, nil
}

// ids returns runAsUser and runAsGroup: the container's have precedence over the pod's.
func (b *builder) ids() (user, group *int64) {
	container, sc := b.security(), podSecurity(b.pod)
	return cmp.Or(container.RunAsUser, sc.RunAsUser), cmp.Or(container.RunAsGroup, sc.RunAsGroup)
}

func (b *builder) nonRoot() bool {
	return ptr.Deref(cmp.Or(b.security().RunAsNonRoot, podSecurity(b.pod).RunAsNonRoot), false)
}

// verifyNonRoot returns an error if runAsNonRoot forbids the user, in the kubelet's words
// (verifyRunAsNonRoot in pkg/kubelet/kuberuntime): the user must be a number and not 0.
func (b *builder) verifyNonRoot(user *int64) error {
	subject := fmt.Sprintf("(pod: %q, container: %s)", fmt.Sprintf("%s_%s(%s)", b.pod.Name, b.pod.Namespace, b.pod.UID), b.c.Name)
	if user != nil {
		if *user == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy %s", subject)
		}
		return nil
	}
	name, _, _ := strings.Cut(b.image.User, ":")
	uid, err := strconv.ParseInt(cmp.Or(name, "0"), 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", name, subject)
	case uid == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", subject)
	}
	if msgs := validation.IsValidUserID(uid); len(msgs) > 0 {
		return fmt.Errorf("container has runAsNonRoot and image has an invalid user id (%d). (Must be 1-(%d)): %s %s", uid, math.MaxInt32, strings.Join(msgs, "; "), subject)
	}
	return nil
}
