package printers

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"text/template"
)

// templatePrinter returns the Printer of a template of package text/template, with the functions that kubectl adds
// (k8s.io/cli-runtime/pkg/printers/template.go).
func templatePrinter(text string) (Printer, error) {
	if text == "" {
		return nil, errors.New("a template is missing: go-template='{{.metadata.name}}'")
	}
	t, err := template.New("output").Funcs(template.FuncMap{"exists": exists, "base64decode": base64decode}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", text, err)
	}
	return func(items []any, single bool) ([]byte, error) {
		object, err := listed(items, single)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, object); err != nil {
			return nil, fmt.Errorf("error executing template %q: %w", text, err)
		}
		return out.Bytes(), nil
	}, nil
}

// exists reports whether there is a value below the keys and indices.
func exists(item any, indices ...any) bool {
	value := reflect.ValueOf(item)
	for _, index := range indices {
		for value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		at := reflect.ValueOf(index)
		switch {
		case value.Kind() == reflect.Slice && at.CanInt():
			if at.Int() < 0 || at.Int() >= int64(value.Len()) {
				return false
			}
			value = value.Index(int(at.Int()))
		case value.Kind() == reflect.Map && at.IsValid() && at.Type().AssignableTo(value.Type().Key()):
			if value = value.MapIndex(at); !value.IsValid() {
				return false
			}
		default:
			return false
		}
	}
	return value.IsValid()
}

func base64decode(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	return string(data), err
}
