package cli

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

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/describe"
	"github.com/podrun/podrun/pod"
)

// objects tells of things that are kept. Pages show no value of a Secret, only its size.
func (d *describing) objects(a asked) error {
	l, err := d.front.list(d.dirs, a, &getWishes{namespace: d.namespace, all: d.all, showSecrets: true})
	if l == nil {
		return err
	}
	errs := []error{err}
	for i := range l.entries {
		e := &l.entries[i]
		if !d.labels.Matches(e.labels) {
			continue
		}
		text, err := d.objectPage(a.kind, e)
		if err == nil {
			err = d.tell(text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *describing) objectPage(kind pod.ObjectKind, e *entry) (string, error) {
	value, err := e.object()
	if err != nil {
		return "", err
	}
	object, ok := value.(metav1.Object)
	if !ok {
		return "", fmt.Errorf("describe %s %s: it is a %T", kind, e.name, value)
	}
	of := describe.Related{}
	switch {
	case makesPods(kind):
		of, err = d.maker(kind, e)
	case kind == pod.KindService:
		of.Endpoints, err = d.endpoints(e)
	case kind == pod.KindClaim:
		var users []store.Pod
		users, err = d.dirs.ClaimUsers(e.namespace, e.name)
		for _, p := range users {
			of.Pods = append(of.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}})
		}
	}
	of.Events = d.events
	return describe.Object(object, of, time.Now()), err
}

// maker is what a workload's page tells of its pods.
func (d *describing) maker(kind pod.ObjectKind, e *entry) (describe.Related, error) {
	v, err := workloadNamed(d.dirs, kind, e.namespace, e.name)
	if err != nil {
		return describe.Related{}, err
	}
	var of describe.Related
	var names []string
	for _, p := range v.pods {
		of.Pods = append(of.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Status: corev1.PodStatus{Phase: corev1.PodPhase(p.Phase)}})
		names = append(names, p.Name)
	}
	slices.Sort(names)
	of.Local = []describe.Field{{Name: "Pods", Value: cmp.Or(strings.Join(names, ", "), "<none>")}}
	return of, nil
}

// endpoints are the addresses of the pods behind a Service, by the names of its ports.
func (d *describing) endpoints(e *entry) (map[string][]string, error) {
	o, err := object(d.dirs, pod.KindService, e.namespace, e.name)
	if err != nil || o.Service == nil {
		return nil, err
	}
	pods, err := behind(d.dirs, o)
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, p := range o.Service.Ports {
		for _, at := range pods {
			if port := targetOf(p, at.is); port != 0 && len(at.is.Addresses) > 0 {
				all[p.Name] = append(all[p.Name], net.JoinHostPort(at.is.Addresses[0], strconv.Itoa(port)))
			}
		}
	}
	return all, nil
}

// targetOf is the number of a Service's port in a pod; 0 if the pod has no such port.
func targetOf(p pod.ServicePort, is *pod.Presence) int {
	if p.TargetName == "" {
		return int(p.TargetPort)
	}
	for _, named := range is.Ports {
		if named.Name == p.TargetName && named.Protocol == p.Protocol {
			return named.Number
		}
	}
	return 0
}
