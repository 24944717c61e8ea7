package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/support"
	"github.com/podrun/podrun/internal/pod"
)

// resolveRuntimeClasses replaces the names of RuntimeClasses in the pods of a file by their handlers, because
// RuntimeClasses are not stored. A name without a RuntimeClass stands for the handler of that name. It returns
// the objects without the RuntimeClasses in use.
func resolveRuntimeClasses(objects []Object, errs *Errors) []Object {
	handlers := map[string]string{}
	for _, name := range podutil.RuntimeHandlers() {
		handlers[name] = name
	}
	for i := range objects {
		if o := &objects[i]; isRuntimeClass(o) {
			handlers[o.Name()] = o.Handler
		}
	}
	used := map[string]bool{}
	for i := range objects {
		o := &objects[i]
		spec, specPath := podSpec(o)
		if spec == nil || spec.RuntimeClassName == nil {
			continue
		}
		name := *spec.RuntimeClassName
		handler, known := handlers[name]
		text := apiutil.Truncate(name, 60)
		switch {
		case slices.Contains(podutil.RuntimeHandlers(), handler):
			spec.RuntimeClassName, used[name] = &handler, true
		case known:
			o.Fail(errs, specPath, fmt.Sprintf("the RuntimeClass %q has the handler %q: podrun has only %s", text, apiutil.Truncate(handler, 60), strings.Join(podutil.RuntimeHandlers(), ", ")))
		default:
			o.Fail(errs, specPath, fmt.Sprintf("unknown runtime class %q: known are %s, and the RuntimeClasses of this file", text, strings.Join(podutil.RuntimeHandlers(), ", ")))
		}
	}
	return slices.DeleteFunc(objects, func(o Object) bool { return isRuntimeClass(&o) && used[o.Name()] })
}

func isRuntimeClass(o *Object) bool { return o.Ignored != "" && o.Kind == "RuntimeClass" }

// podSpec returns the spec of the pods that an object describes, nil if it describes none, and the path of its
// runtimeClassName.
func podSpec(o *Object) (*corev1.PodSpec, string) {
	const field = "spec.runtimeClassName"
	switch {
	case o.Pod != nil:
		return &o.Pod.Spec, field
	case o.IsWorkload():
		return &conversion.PodTemplate(o.Value).Spec, support.TemplatePath(pod.ObjectKind(o.Kind)) + "." + field
	}
	return nil, ""
}
