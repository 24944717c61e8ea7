package manifest

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// user spells the container's user: the manifest's numbers, or the image's own
// spelling, with the manifest's group if it names one.
func (b *builder) user() (string, error) {
	user, group := b.ids()
	if is(b.nonRoot()) {
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

// ids gives runAsUser and runAsGroup: the container's count before the pod's.
func (b *builder) ids() (user, group *int64) {
	own := b.security()
	user, group = own.RunAsUser, own.RunAsGroup
	if sc := b.pod.Spec.SecurityContext; sc != nil {
		user, group = cmp.Or(user, sc.RunAsUser), cmp.Or(group, sc.RunAsGroup)
	}
	return user, group
}

func (b *builder) nonRoot() *bool {
	if sc := b.pod.Spec.SecurityContext; sc != nil {
		return cmp.Or(b.security().RunAsNonRoot, sc.RunAsNonRoot)
	}
	return b.security().RunAsNonRoot
}

// verifyNonRoot refuses what runAsNonRoot forbids, in the kubelet's words
// (verifyRunAsNonRoot in pkg/kubelet/kuberuntime): the user must be known, as a
// number, not to be root.
func (b *builder) verifyNonRoot(user *int64) error {
	who := fmt.Sprintf("(pod: %q, container: %s)", fmt.Sprintf("%s_%s(%s)", b.pod.Name, b.pod.Namespace, b.pod.UID), b.c.Name)
	if user != nil {
		if *user == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy %s", who)
		}
		return nil
	}
	name, _, _ := strings.Cut(b.image.User, ":")
	uid, err := strconv.ParseInt(cmp.Or(name, "0"), 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", name, who)
	case uid == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", who)
	}
	if msgs := validation.IsValidUserID(uid); len(msgs) > 0 {
		return fmt.Errorf("container has runAsNonRoot and image has an invalid user id (%d). (Must be 1-(%d)): %s %s", uid, math.MaxInt32, strings.Join(msgs, "; "), who)
	}
	return nil
}
