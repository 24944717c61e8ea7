package printers

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/report"
)

// Printer writes objects for programs. single: one was requested by name, so it is not written as a List.
type Printer func(items []any, single bool) ([]byte, error)

// ParsePrinter returns the Printer for a format of kubectl's: json, yaml, jsonpath=TEMPLATE,
// jsonpath-as-json=TEMPLATE, go-template=TEMPLATE or custom-columns=NAME:PATH,…; ok is false for others.
func ParsePrinter(format string, noHeaders bool) (p Printer, ok bool, err error) {
	name, template, given := strings.Cut(format, "=")
	switch name {
	case "json", "yaml":
		return func(items []any, single bool) ([]byte, error) { return PrintList(items, single, Format(name)) }, !given, nil
	case "jsonpath", "jsonpath-as-json":
		p, err = jsonpathPrinter(template, name == "jsonpath-as-json")
		return p, true, err
	case "go-template":
		p, err = templatePrinter(template)
		return p, true, err
	case "custom-columns":
		p, err = columnsPrinter(template, noHeaders)
		return p, true, err
	}
	return nil, false, nil
}

func jsonpathPrinter(template string, asJSON bool) (Printer, error) {
	if template == "" {
		return nil, fmt.Errorf("a template is missing: jsonpath='{.status.phase}'")
	}
	path := jsonpath.New("out").AllowMissingKeys(true)
	path.EnableJSONOutput(asJSON)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("template %q: %w", template, err)
	}
	return func(items []any, single bool) ([]byte, error) {
		object, err := listed(items, single)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := path.Execute(&out, object); err != nil {
			return nil, fmt.Errorf("template %q: %w", template, err)
		}
		return out.Bytes(), nil
	}, nil
}

// listed returns what JSON has of items, for a template.
func listed(items []any, single bool) (object any, err error) {
	text, err := PrintList(items, single, JSON)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	return object, nil
}

// relaxedPath matches a path that may lack its braces and its first dot (RelaxedJSONPathExpression in
// k8s.io/kubectl/pkg/cmd/get).
var relaxedPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{?\.?([^{}]+)\}?$`)
})

func parsePath(text string) (*jsonpath.JSONPath, error) {
	m := relaxedPath().FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q is not a path such as .metadata.name", text)
	}
	path := jsonpath.New("path").AllowMissingKeys(true)
	if err := path.Parse("{." + m[1] + "}"); err != nil {
		return nil, fmt.Errorf("path %q: %w", text, err)
	}
	return path, nil
}

func columnsPrinter(spec string, noHeaders bool) (Printer, error) {
	var heads []string
	var paths []*jsonpath.JSONPath
	for _, column := range strings.Split(spec, ",") {
		head, text, ok := strings.Cut(column, ":")
		if !ok || head == "" {
			return nil, fmt.Errorf("%q is not a column: it is NAME:PATH, such as NAME:.metadata.name", column)
		}
		path, err := parsePath(text)
		if err != nil {
			return nil, err
		}
		heads, paths = append(heads, head), append(paths, path)
	}
	return func(items []any, single bool) ([]byte, error) {
		var out bytes.Buffer
		w := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
		if !noHeaders {
			fmt.Fprintln(w, strings.Join(heads, "\t"))
		}
		for _, item := range items {
			object, err := apiutil.ToUnstructured(item)
			if err != nil {
				return nil, err
			}
			cells, err := cellsAt(paths, object)
			if err != nil {
				return nil, err
			}
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
		err := w.Flush()
		return out.Bytes(), err
	}, nil
}

// cellsAt returns an object's cells: the values at each path, escaped.
func cellsAt(paths []*jsonpath.JSONPath, object any) (cells []string, err error) {
	for _, path := range paths {
		found, err := path.FindResults(object)
		if err != nil {
			return nil, err
		}
		var values []string
		for _, list := range found {
			for _, v := range list {
				values = append(values, strings.TrimSuffix(fmt.Sprint(v.Interface()), "\n"))
			}
		}
		cell := "<none>"
		if len(values) > 0 {
			cell = report.Escape(strings.Join(values, ","))
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// FormatLabels returns labels in order, or <none>.
func FormatLabels(m map[string]string) string { return labels.FormatLabels(m) }
