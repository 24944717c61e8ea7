package manifest

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/manifest/resources"
)

// Marshal returns a Pod as the JSON that is stored beside its plan.
func Marshal(p *corev1.Pod) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode pod %s: %w", p.Name, err)
	}
	return data, nil
}

// Unmarshal reads the JSON that Marshal wrote. It ignores fields of a newer podrun.
func Unmarshal(data []byte) (*corev1.Pod, error) {
	var p corev1.Pod
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	return &p, nil
}

// LoadRecorded returns the Pod of a text that Marshal wrote after FillSystemFields, as it was loaded.
func LoadRecorded(text []byte) (*Object, error) {
	p, err := Unmarshal(text)
	if err != nil {
		return nil, err
	}
	podutil.ClearSystemFields(p)
	return &Object{File: "pod " + p.Name, Kind: "Pod", Value: p, Pod: p, Effective: resources.ComputeEffective(p)}, nil
}

// NewObject is Load for an object that a command made: a ConfigMap, a Secret. It changes the object. The
// error is an *Errors.
func NewObject(kind string, object metav1.Object) (*Object, error) {
	o := &Object{File: kind + " " + object.GetName(), Kind: kind, Value: object}
	errs := &Errors{}
	finishStored(o, "", errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return o, nil
}
