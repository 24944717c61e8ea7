package kustomize

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/manifest/kustomize/api"
)

// patch applies a patch, as an API server does (k8s.io/apiserver/pkg/endpoints/handlers/patch.go).
func patch(request api.Patch) api.Result {
	out, err := patched(request)
	if err != nil {
		return api.Result{Problem: err.Error()}
	}
	return api.Result{Output: out}
}

func patched(request api.Patch) ([]byte, error) {
	change, err := yaml.YAMLToJSON(request.Patch)
	if err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	switch request.Type {
	case api.JSON:
		p, err := jsonpatch.DecodePatch(change)
		if err != nil {
			return nil, fmt.Errorf("read the patch, a list of operations: %w", err)
		}
		return p.Apply(request.Object)
	case api.Merge:
		return jsonpatch.MergePatch(request.Object, change)
	}
	var object, fields map[string]any
	if err := json.Unmarshal(change, &fields); err != nil {
		return nil, fmt.Errorf("read the patch, an object: %w", err)
	}
	if err := json.Unmarshal(request.Object, &object); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, fields, lookup{request.Schema})
	if err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}

// lookup answers how the fields of a Schema are merged.
type lookup struct{ *api.Schema }

// LookupPatchMetadataForStruct implements strategicpatch.LookupPatchMeta.
func (l lookup) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	var meta strategicpatch.PatchMeta
	if l.Schema == nil || l.Fields[key] == nil {
		return nil, meta, fmt.Errorf("unable to find api field %q", key)
	}
	field := l.Fields[key]
	meta.SetPatchStrategies(field.Strategies)
	meta.SetPatchMergeKey(field.MergeKey)
	return lookup{field}, meta, nil
}

// LookupPatchMetadataForSlice implements strategicpatch.LookupPatchMeta. The fields of a list's Schema are the fields of
// its elements.
func (l lookup) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	sub, meta, err := l.LookupPatchMetadataForStruct(key)
	if err == nil && !l.Fields[key].List {
		err = fmt.Errorf("%q is not a list", key)
	}
	return sub, meta, err
}

// Name implements strategicpatch.LookupPatchMeta.
func (l lookup) Name() string { return "struct" }
