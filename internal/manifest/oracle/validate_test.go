package oracle

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	kcorev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	manifestvalidation "github.com/podrun/podrun/internal/manifest/validation"
)

// TestDefaults: the stored Pod is what the API server would store.
func TestDefaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours := draw{t, false}.pod()
		theirs := ours.DeepCopy()
		defaulting.SetDefaults(ours)
		theirs = serverDefaults(t, theirs)
		if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// serverDefaults returns the Pod as the API server has it before it validates: with the defaults of its
// fields, and with what its strategy for creation adds.
func serverDefaults(t *rapid.T, p *corev1.Pod) *corev1.Pod {
	if p.Namespace == "" {
		p.Namespace = "default" // from the request
	}
	kcorev1.SetObjectDefaults_Pod(p)
	internal := convert(t, p)
	podutil.DefaultPodLevelResources(internal)
	out := &corev1.Pod{TypeMeta: p.TypeMeta}
	if err := kcorev1.Convert_core_Pod_To_v1_Pod(internal, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func convert(t *rapid.T, p *corev1.Pod) *core.Pod {
	var internal core.Pod
	if err := kcorev1.Convert_v1_Pod_To_core_Pod(p.DeepCopy(), &internal, nil); err != nil {
		t.Fatal(err)
	}
	return &internal
}

// TestValidate: the mistakes are the API server's, for what it checks, in its words.
func TestValidate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw{t, true}.pod()
		p = serverDefaults(t, p)
		ours := words(manifestvalidation.ValidatePod(p))
		theirs := words(serverErrors(t, p))
		if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func serverErrors(t *rapid.T, p *corev1.Pod) field.ErrorList {
	internal := convert(t, p)
	opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	opts.ResourceIsPod = true
	return validation.ValidatePodCreate(internal, opts)
}

var strayLimits = regexp.MustCompile(`^spec\.resources\.containers\[(\d+)\]\[(.*)\]\.limits$`)

// words makes mistakes comparable.
func words(errs field.ErrorList) []string {
	var list []string
	for _, e := range errs {
		if e.BadValue == "" && (e.Type == field.ErrorTypeDuplicate || e.Detail == "must be unique") {
			continue // the missing value is reported already
		}
		// The API server reports a field that does not exist.
		e.Field = strayLimits.ReplaceAllString(e.Field, "spec.containers[$1].resources.limits[$2]")
		list = append(list, e.Error())
	}
	slices.Sort(list)
	return slices.Compact(list)
}
