package build

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// defaultPath is the PATH that Docker and containerd set for an image without one.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ownEnv returns the part of a container's environment that no manifest declares: PATH, HOSTNAME, with a
// terminal TERM (containerd: internal/cri/server), and the image's variables, which have precedence.
func (b *builder) ownEnv() []string {
	env := []string{"PATH=" + defaultPath, "HOSTNAME=" + b.hostname}
	if b.c.TTY {
		env = append(env, "TERM=xterm")
	}
	for _, kv := range b.image.Env {
		env = setEnv(env, kv)
	}
	return env
}

// setEnv sets a variable, NAME=value. It drops anything else.
func setEnv(env []string, kv string) []string {
	name, _, ok := strings.Cut(kv, "=")
	if !ok || name == "" || strings.IndexByte(kv, 0) >= 0 {
		return env
	}
	for i := range env {
		if strings.HasPrefix(env[i], name+"=") {
			env[i] = kv
			return env
		}
	}
	return append(env, kv)
}

// envFrom returns the objects of which every key becomes a variable.
func (b *builder) envFrom() []pod.EnvFrom {
	var list []pod.EnvFrom
	for _, f := range b.c.EnvFrom {
		source := pod.EnvFrom{Prefix: f.Prefix}
		if c := f.ConfigMapRef; c != nil {
			source.Kind, source.Name, source.Optional = pod.KindConfigMap, c.Name, ptr.Deref(c.Optional, false)
		}
		if s := f.SecretRef; s != nil {
			source.Kind, source.Name, source.Optional = pod.KindSecret, s.Name, ptr.Deref(s.Optional, false)
		}
		list = append(list, source)
	}
	return list
}

// vars returns the variables that the manifest declares. References are resolved when the container is
// created, except those to the manifest itself.
func (b *builder) vars() ([]pod.EnvVar, error) {
	var list []pod.EnvVar
	for _, e := range b.c.Env {
		v := pod.EnvVar{Name: e.Name, Value: e.Value}
		if e.Value == "" && e.ValueFrom != nil {
			var err error
			if v.From, err = b.from(e.ValueFrom); err != nil {
				return nil, err
			}
		}
		list = append(list, v)
	}
	return list, nil
}

// runtimeFields are set once the pod has its network.
var runtimeFields = []string{"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"}

func (b *builder) from(s *corev1.EnvVarSource) (*pod.EnvRef, error) {
	var text string
	var err error
	switch {
	case s.ConfigMapKeyRef != nil:
		r := s.ConfigMapKeyRef
		return &pod.EnvRef{Key: &pod.KeyRef{Kind: pod.KindConfigMap, Name: r.Name, Key: r.Key, Optional: ptr.Deref(r.Optional, false)}}, nil
	case s.SecretKeyRef != nil:
		r := s.SecretKeyRef
		return &pod.EnvRef{Key: &pod.KeyRef{Kind: pod.KindSecret, Name: r.Name, Key: r.Key, Optional: ptr.Deref(r.Optional, false)}}, nil
	case s.FileKeyRef != nil:
		r := s.FileKeyRef
		return &pod.EnvRef{File: &pod.FileRef{Volume: r.VolumeName, Path: r.Path, Key: r.Key, Optional: ptr.Deref(r.Optional, false)}}, nil
	case s.ResourceFieldRef != nil:
		text, err = b.resourceValue(s.ResourceFieldRef)
	case s.FieldRef != nil && slices.Contains(runtimeFields, s.FieldRef.FieldPath):
		return &pod.EnvRef{Field: s.FieldRef.FieldPath}, nil
	case s.FieldRef != nil:
		text, err = fieldValue(b.pod, s.FieldRef.FieldPath)
	}
	return &pod.EnvRef{Text: &text}, err
}

// fieldValue returns the value of a validated field path.
func fieldValue(p *corev1.Pod, fieldPath string) (string, error) {
	if of, key, ok := podutil.SplitSubscriptedPath(fieldPath); ok {
		switch of {
		case "metadata.labels":
			return p.Labels[key], nil
		case "metadata.annotations":
			return p.Annotations[key], nil
		}
	}
	switch fieldPath {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	}
	return "", fmt.Errorf("resolve fieldRef: %s is not supported yet", fieldPath)
}
