package cli

import (
	"encoding/json"
	"errors"

	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/support"
)

// verdict is what validate -o json prints. Fields may be added, never changed.
type verdict struct {
	Valid   bool            `json:"valid"`
	Objects []verdictObject `json:"objects"` // of files without errors
	Errors  []verdictError  `json:"errors"`
}

// verdictObject is one object and what podrun makes of its fields.
type verdictObject struct {
	File      string         `json:"file"`
	Document  int            `json:"document"`
	Line      int            `json:"line"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	NoEffect  string         `json:"noEffect,omitempty"` // why it means nothing here
	QOSClass  string         `json:"qosClass,omitempty"`
	Fields    []verdictField `json:"fields"`
}

type verdictField struct {
	Path    string        `json:"path"`
	Line    int           `json:"line,omitempty"`
	Support support.Level `json:"support"` // done, accepted or refused
	Note    string        `json:"note,omitempty"`
}

// verdictError is one mistake. What is not about one document has a message only.
type verdictError struct {
	File     string `json:"file,omitempty"`
	Document int    `json:"document,omitempty"`
	Line     int    `json:"line,omitempty"`
	Field    string `json:"field,omitempty"`
	Message  string `json:"message"`
}

// printVerdict prints objects and the mistakes that err holds as JSON.
func (f *front) printVerdict(good, idle []manifest.Object, err error) error {
	v := verdict{Valid: err == nil, Objects: []verdictObject{}, Errors: mistakes(err)}
	for i := range good {
		o := verdictOf(&good[i])
		o.Namespace = good[i].Value.GetNamespace()
		for _, found := range good[i].Findings {
			o.Fields = append(o.Fields, verdictField(found))
		}
		v.Objects = append(v.Objects, o)
	}
	for i := range idle {
		v.Objects = append(v.Objects, verdictOf(&idle[i]))
	}
	text, jerr := json.MarshalIndent(v, "", "  ")
	if jerr != nil {
		return jerr
	}
	return f.show(append(text, '\n'))
}

func verdictOf(o *manifest.Object) verdictObject {
	return verdictObject{
		File: o.File, Document: o.Document, Line: o.Line, Kind: o.Kind, Name: o.Name(),
		NoEffect: o.Ignored, QOSClass: o.Effective.QOSClass, Fields: []verdictField{},
	}
}

// mistakes are the single errors that err is made of.
func mistakes(err error) []verdictError {
	list := []verdictError{}
	var walk func(err error)
	walk = func(err error) {
		var all *manifest.Errors
		_, whole := err.(*manifest.Errors)
		joined, several := err.(interface{ Unwrap() []error })
		switch {
		case err == nil:
		case several && !whole:
			for _, one := range joined.Unwrap() {
				walk(one)
			}
		case errors.As(err, &all):
			for _, e := range all.List {
				list = append(list, verdictError{e.File, e.Document, e.Line, e.Field, e.Message})
			}
		default:
			list = append(list, verdictError{Message: err.Error()})
		}
	}
	walk(err)
	return list
}
