package manifest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// Machine is what a pod may use at most: what a limit is that nobody has set.
type Machine struct {
	CPU     int64 // millicores
	Memory  int64 // bytes
	Storage int64 // bytes
}

// resourceValue gives a request or limit of a container as the kubelet does
// (ExtractContainerResourceValue in pkg/api/v1/resource of Kubernetes): divided, and
// rounded up. A limit that is not set is the one that the container has all the same,
// by the rule for the pod's limits, else the machine's.
func (b *builder) resourceValue(ref *corev1.ResourceFieldSelector) (string, error) {
	name := cmp.Or(ref.ContainerName, b.c.Name)
	c, effective := b.find(name)
	if c == nil {
		return "", fmt.Errorf("container %s not found", name)
	}
	which, of, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Requests
	if which == "limits" {
		list = c.Resources.Limits
	}
	q := list[corev1.ResourceName(of)]
	if which == "limits" && q.IsZero() {
		q = b.unlimited(of, effective)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if of == "cpu" {
		return divided(q.MilliValue(), divisor.MilliValue()), nil
	}
	return divided(q.Value(), divisor.Value()), nil
}

func divided(n, by int64) string {
	return strconv.FormatInt(int64(math.Ceil(float64(n)/float64(by))), 10)
}

// unlimited is the limit of a resource of a container that has set none.
func (b *builder) unlimited(of string, effective pod.Resources) resource.Quantity {
	switch of {
	case "cpu":
		return *resource.NewMilliQuantity(cmp.Or(effective.CPULimit, b.machine.CPU), resource.DecimalSI)
	case "memory":
		return *resource.NewQuantity(cmp.Or(effective.MemoryLimit, b.machine.Memory), resource.BinarySI)
	case "ephemeral-storage":
		return *resource.NewQuantity(b.machine.Storage, resource.BinarySI)
	}
	return resource.Quantity{} // huge pages are never shared out
}

// find looks a container of the pod up, with what it may use.
func (b *builder) find(name string) (*corev1.Container, pod.Resources) {
	s := &b.pod.Spec
	for i := range s.Containers {
		if s.Containers[i].Name == name {
			return &s.Containers[i], at(b.effective.Containers, i)
		}
	}
	for i := range s.InitContainers {
		if s.InitContainers[i].Name == name {
			return &s.InitContainers[i], at(b.effective.InitContainers, i)
		}
	}
	return nil, pod.Resources{}
}

// at is an item of a list that may not have been made.
func at(list []pod.Resources, i int) pod.Resources {
	if i < len(list) {
		return list[i]
	}
	return pod.Resources{}
}

// validateResourceRef is validateContainerResourceFieldSelector of
// pkg/apis/core/validation.
func validateResourceRef(ref *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	return append(validateResource(ref.Resource, path.Child("resource")), validateDivisor(ref, path.Child("divisor"))...)
}

// missingContainers finds variables that refer to a container which the pod has not. A
// kubelet only says so when it creates the container.
func missingContainers(p *corev1.Pod, at string, c *corev1.Container) []Finding {
	var found []Finding
	for i, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.ResourceFieldRef == nil || e.ValueFrom.ResourceFieldRef.ContainerName == "" {
			continue
		}
		name := e.ValueFrom.ResourceFieldRef.ContainerName
		named := func(c corev1.Container) bool { return c.Name == name }
		if !slices.ContainsFunc(p.Spec.InitContainers, named) && !slices.ContainsFunc(p.Spec.Containers, named) {
			found = append(found, Finding{Path: fmt.Sprintf("%s.env[%d].valueFrom.resourceFieldRef.containerName", at, i), Support: Refused,
				Note: fmt.Sprintf("no container of this pod has the name %q", clip(name, 60))})
		}
	}
	return found
}

// resourceRefs are the resources that the API takes, those of huge pages aside.
func resourceRefs() []string {
	return []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"}
}

func hugePagesRef(name string) bool {
	return strings.HasPrefix(name, "limits.hugepages-") || strings.HasPrefix(name, "requests.hugepages-")
}

func validateResource(name string, path *field.Path) field.ErrorList {
	if name != "" && hugePagesRef(name) {
		return nil
	}
	return oneOf(name, path, resourceRefs()...)
}

func validateDivisor(ref *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	const sizes = " 1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei "
	if ref.Divisor.IsZero() {
		return nil
	}
	_, of, _ := strings.Cut(ref.Resource, ".")
	one := " " + ref.Divisor.String() + " "
	switch {
	case of == "cpu" && !strings.Contains(" 1m 1 ", one):
		return field.ErrorList{field.Invalid(path, ref.Resource, "only divisor's values 1m and 1 are supported with the cpu resource")}
	case of == "cpu" || strings.Contains(sizes, one):
		return nil
	case of == "memory":
		of = "memory"
	case of == "ephemeral-storage":
		of = "local ephemeral storage"
	case hugePagesRef(ref.Resource):
		of = "hugepages"
	default:
		return nil // the resource itself is wrong
	}
	return field.ErrorList{field.Invalid(path, ref.Resource, "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "+of+" resource")}
}
