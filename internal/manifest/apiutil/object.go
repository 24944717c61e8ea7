package apiutil

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// ObjectMeta returns the metadata of an API object.
func ObjectMeta(object metav1.Object) *metav1.ObjectMeta {
	return object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// ToUnstructured converts an object to maps and lists.
func ToUnstructured(item any) (any, error) {
	text, err := json.Marshal(item)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return out, nil
}
