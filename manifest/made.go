package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Made is Load for an object that a command has put together: a ConfigMap, a Secret. It
// changes it. The error is an *Errors.
func Made(kind string, object metav1.Object) (*Object, error) {
	o := &Object{File: kind + " " + object.GetName(), Kind: kind, Value: object}
	errs := &Errors{}
	o.completeStored(errs)
	if err := errs.result(); err != nil {
		return nil, err
	}
	return o, nil
}
