// Package change has the commands that change the fields of existing objects: patch, edit and replace.
package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// errRead ends a change that only reads the object.
var errRead = errors.New("the object is read")

// read returns an object in JSON, as the changes of controller.Edit get it.
func read(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, ref kindnames.ObjectRef) (text []byte, err error) {
	_, err = controller.Edit(ctx, env, dirs, ref, cmdutil.DryRunClient, func(object metav1.Object) error {
		if text, err = encode(object); err != nil {
			return err
		}
		return errRead
	})
	if errors.Is(err, errRead) {
		err = nil
	}
	return text, err
}

func encode(object metav1.Object) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
	}
	return text, nil
}

// put replaces the content of an object by the only object in a text, which must have the same kind and name. What
// podrun sets stays: the UID, the time of the creation and the like.
func put(object metav1.Object, file string, text []byte) error {
	found, err := manifest.Decode(file, text)
	switch {
	case err != nil:
		return report.New(report.Usage, "", "%w", err)
	case len(found) != 1:
		return report.New(report.Usage, "", "%s has %d objects instead of one", file, len(found))
	}
	next := found[0].Value
	switch {
	case next == nil || reflect.TypeOf(next) != reflect.TypeOf(object):
		return report.New(report.Usage, "", "%s: the kind of an object cannot be changed to %s", file, found[0].Kind)
	case next.GetName() != object.GetName():
		return report.New(report.Usage, "", "%s: metadata.name: the name of the object (%s) does not match the existing one (%s)", file, next.GetName(), object.GetName())
	case next.GetNamespace() != object.GetNamespace() && next.GetNamespace() != "":
		return report.New(report.Usage, "", "%s: metadata.namespace: the namespace of the object (%s) does not match the existing one (%s)", file, next.GetNamespace(), object.GetNamespace())
	}
	next.SetNamespace(object.GetNamespace())
	next.SetUID(object.GetUID())
	next.SetCreationTimestamp(object.GetCreationTimestamp())
	next.SetResourceVersion(object.GetResourceVersion())
	next.SetGeneration(object.GetGeneration())
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(next).Elem())
	return nil
}
