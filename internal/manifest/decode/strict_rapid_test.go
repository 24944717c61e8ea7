package decode

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// TestRandomPodsAsKubernetes makes documents from the Go types of a Pod, with some mistakes, and compares
// the decoder with Kubernetes' own.
func TestRandomPodsAsKubernetes(t *testing.T) {
	kube := kubernetes(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := generator{T: rt, schema: apiutil.FieldCache{}}
		data, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": g.value(reflect.TypeFor[metav1.ObjectMeta](), 3),
			"spec":     g.value(reflect.TypeFor[corev1.PodSpec](), 6),
		})
		if err != nil {
			rt.Fatal(err)
		}
		sameAsKubernetes(t, data, kube)
		if t.Failed() {
			rt.FailNow()
		}
	})
}

type generator struct {
	*rapid.T
	schema apiutil.FieldCache
}

var wrong = []any{nil, true, "true", 1, -1, 1.5, "", "x", []any{}, []any{1}, map[string]any{}, map[string]any{"a": 1}, json.Number("99999999999999999999"), strings.Repeat("9", 70)}

func (g generator) value(t reflect.Type, depth int) any {
	if rapid.IntRange(0, 19).Draw(g.T, "wrong") == 0 {
		return rapid.SampledFrom(wrong).Draw(g.T, "value")
	}
	t = apiutil.DerefType(t)
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return rapid.SampledFrom([]any{"1", 1, 0.5, "100m", "1Gi", "1e3", "-5", "1e19", "x", "8Ei"}).Draw(g.T, "quantity")
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return rapid.SampledFrom([]any{"2020-01-01T00:00:00Z", "yesterday", nil}).Draw(g.T, "time")
	}
	if apiutil.UnmarshalsItself(t) {
		return rapid.SampledFrom([]any{1, "a", nil}).Draw(g.T, "opaque")
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.object(t, depth)
	case reflect.Map:
		out := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(g.T, "entries") {
			out[rapid.SampledFrom([]string{"a", "cpu", "memory", "x/y"}).Draw(g.T, "key")] = g.value(t.Elem(), depth-1)
		}
		return out
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return rapid.SampledFrom([]any{"aGk=", "!", ""}).Draw(g.T, "bytes")
		}
		out := []any{}
		for range rapid.IntRange(0, 2).Draw(g.T, "items") {
			out = append(out, g.value(t.Elem(), depth-1))
		}
		return out
	case reflect.String:
		return rapid.SampledFrom([]string{"", "a", "Always", "true", "12"}).Draw(g.T, "text")
	case reflect.Bool:
		return rapid.Bool().Draw(g.T, "flag")
	default:
		return rapid.SampledFrom([]int64{0, 1, -1, 80, 65536, 1 << 31, 1 << 33}).Draw(g.T, "number")
	}
}

func (g generator) object(t reflect.Type, depth int) any {
	out := map[string]any{}
	fields := g.schema.Fields(t)
	names := slices.Sorted(maps.Keys(fields))
	if depth == 0 || len(names) == 0 {
		return out
	}
	for range rapid.IntRange(0, 4).Draw(g.T, "fields") {
		name := rapid.SampledFrom(names).Draw(g.T, "field")
		value := g.value(fields[name], depth-1)
		if rapid.IntRange(0, 29).Draw(g.T, "misspell") == 0 {
			name = rapid.SampledFrom([]string{strings.ToUpper(name), name + "x", "x y"}).Draw(g.T, "name")
		}
		out[name] = value
	}
	return out
}
