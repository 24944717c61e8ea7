package describe

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/describe"
	manifeststatus "github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// objects prints the pages of stored objects. For a Secret they contain only the sizes of its values.
func (o *options) objects(a kindnames.Query) error {
	l, err := printers.List(o.Env, o.Dirs, a, &printers.PrintOptions{Namespace: o.Namespace, All: o.AllNamespaces})
	if l == nil {
		return err
	}
	errs := []error{err}
	for i := range l.Entries {
		e := &l.Entries[i]
		if !o.labels.Matches(e.Labels) {
			continue
		}
		text, err := o.objectPage(a.Kind, e)
		if err == nil {
			err = o.print(text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *options) objectPage(kind pod.ObjectKind, e *printers.Entry) (string, error) {
	value, err := e.Object()
	if err != nil {
		return "", err
	}
	object, ok := value.(metav1.Object)
	if !ok {
		return "", fmt.Errorf("describe %s %s: unexpected type %T", kind, e.Name, value)
	}
	of := describe.Related{}
	switch {
	case kindnames.IsWorkload(kind):
		of, err = o.workloadDetails(kind, e)
	case kind == pod.KindService:
		of.Endpoints, err = o.endpoints(e)
	case kind == pod.KindClaim:
		var users []store.Pod
		users, err = o.claimUsers(e.Namespace, e.Name)
		for _, p := range users {
			of.Pods = append(of.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}})
		}
	}
	of.NoEvents = !o.showEvents
	return describe.Object(object, of, time.Now()), err
}

// claimUsers returns the pods that mount a claim.
func (o *options) claimUsers(namespace, name string) ([]store.Pod, error) {
	claim, err := resource.FindObject(o.Dirs, pod.KindClaim, namespace, name)
	if err != nil {
		return nil, err
	}
	dirs := o.Dirs
	if claim.IsFromCluster() {
		dirs = dirs.OfCluster()
	}
	return dirs.ClaimUsers(namespace, name)
}

// workloadDetails returns the parts of a workload's page about its pods.
func (o *options) workloadDetails(kind pod.ObjectKind, e *printers.Entry) (describe.Related, error) {
	v, err := resource.FindWorkload(o.Dirs, kind, e.Namespace, e.Name)
	if err != nil {
		return describe.Related{}, err
	}
	var of describe.Related
	var names []string
	for _, p := range v.Pods {
		of.Pods = append(of.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Status: corev1.PodStatus{Phase: corev1.PodPhase(p.Phase)}})
		names = append(names, p.Name)
	}
	slices.Sort(names)
	of.Events = manifeststatus.WorkloadEvents(v.Object, v.State.Events.Events)
	of.Local = []describe.Field{{Name: "Pods", Value: cmp.Or(strings.Join(names, ", "), "<none>")}}
	return of, nil
}

// endpoints returns the addresses behind a Service, by the names of its ports.
func (o *options) endpoints(e *printers.Entry) (map[string][]string, error) {
	service, err := resource.FindObject(o.Dirs, pod.KindService, e.Namespace, e.Name)
	if err != nil || service.Service == nil {
		return nil, err
	}
	var pods []resource.Endpoint
	if !service.IsFromCluster() { // the cluster decides which of the selected pods count
		if pods, err = resource.EndpointsOf(o.Dirs, service); err != nil {
			return nil, err
		}
	}
	all := map[string][]string{}
	fixed, err := resource.FixedEndpoints(o.Dirs, service)
	if err != nil {
		return nil, err
	}
	for _, p := range service.Service.Ports {
		for _, endpoint := range fixed {
			for _, port := range endpoint.Ports {
				if port.Name == p.Name && port.Protocol == p.Protocol {
					all[p.Name] = append(all[p.Name], net.JoinHostPort(endpoint.Address, strconv.Itoa(int(port.Port))))
				}
			}
		}
	}
	for _, p := range service.Service.Ports {
		for _, endpoint := range pods {
			if port := endpoint.TargetOf(p); port != 0 && len(endpoint.Endpoint.Addresses) > 0 {
				all[p.Name] = append(all[p.Name], net.JoinHostPort(endpoint.Endpoint.Addresses[0], strconv.Itoa(port)))
			}
		}
	}
	return all, nil
}
