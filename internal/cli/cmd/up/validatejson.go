package up

import (
	"encoding/json"
	"errors"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/support"
)

// validation is the output of validate -o json. Fields may be added, never changed.
type validation struct {
	Valid   bool              `json:"valid"`
	Objects []validatedObject `json:"objects"` // of files without errors
	Errors  []validationError `json:"errors"`
}

// validatedObject is one object with the findings on its fields.
type validatedObject struct {
	File      string           `json:"file"`
	Document  int              `json:"document"`
	Line      int              `json:"line"`
	Kind      string           `json:"kind"`
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	NoEffect  string           `json:"noEffect,omitempty"` // why it is ignored
	QOSClass  string           `json:"qosClass,omitempty"`
	Fields    []validatedField `json:"fields"`
}

type validatedField struct {
	Path    string        `json:"path"`
	Line    int           `json:"line,omitempty"`
	Support support.Level `json:"support"` // supported, accepted or refused
	Note    string        `json:"note,omitempty"`
}

// validationError is one error. An error that belongs to no single document has a message only.
type validationError struct {
	File     string `json:"file,omitempty"`
	Document int    `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	Field    string `json:"field,omitempty"`
	Message  string `json:"message"`
}

// printValidation prints the valid objects, those without effect here, and the errors that err joins, as
// JSON.
func printValidation(env *cmdutil.Env, valid, ignored []manifest.Object, err error) error {
	v := validation{Valid: err == nil, Objects: []validatedObject{}, Errors: validationErrors(err)}
	for i := range valid {
		o := newValidatedObject(&valid[i])
		o.Namespace = valid[i].Value.GetNamespace()
		for _, found := range valid[i].Findings {
			o.Fields = append(o.Fields, validatedField(found))
		}
		v.Objects = append(v.Objects, o)
	}
	for i := range ignored {
		v.Objects = append(v.Objects, newValidatedObject(&ignored[i]))
	}
	text, jerr := json.MarshalIndent(v, "", "  ")
	if jerr != nil {
		return jerr
	}
	return env.WriteSafe(append(text, '\n'))
}

func newValidatedObject(o *manifest.Object) validatedObject {
	return validatedObject{
		File: o.File, Document: o.Document, Line: o.Line, Kind: o.Kind, Name: o.Name(),
		NoEffect: o.Ignored, QOSClass: o.Effective.QOSClass, Fields: []validatedField{},
	}
}

// validationErrors returns the single errors that err joins.
func validationErrors(err error) []validationError {
	list := []validationError{}
	var walk func(err error)
	walk = func(err error) {
		var all *manifest.Errors
		_, whole := err.(*manifest.Errors)
		joined, several := err.(interface{ Unwrap() []error })
		switch {
		case err == nil:
		case several && !whole:
			for _, mistake := range joined.Unwrap() {
				walk(mistake)
			}
		case errors.As(err, &all):
			for _, e := range all.List {
				list = append(list, validationError{e.File, e.Document, e.Line, e.Field, e.Message})
			}
		default:
			list = append(list, validationError{Message: err.Error()})
		}
	}
	walk(err)
	return list
}
