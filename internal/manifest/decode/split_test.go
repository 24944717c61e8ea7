package decode

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	type doc struct {
		Number, Line int
		Data         string
	}
	for _, test := range []struct {
		name, in string
		want     []doc
	}{
		{"one", "a: 1\n", []doc{{1, 1, "a: 1\n"}}},
		{"no newline at the end", "a: 1\n---\nb: 2", []doc{{1, 1, "a: 1\n"}, {2, 3, "b: 2"}}},
		{"separator first", "---\na: 1\n", []doc{{1, 2, "a: 1\n"}}},
		{"comment before the first separator", "# x\n\n---\na: 1\n", []doc{{1, 4, "a: 1\n"}}},
		{"empty one between", "a: 1\n---\n---\nb: 2\n", []doc{{1, 1, "a: 1\n"}, {2, 3, ""}, {3, 4, "b: 2\n"}}},
		{"separator with a comment", "a: 1\n--- # two\nb: 2\n", []doc{{1, 1, "a: 1\n"}, {2, 3, "b: 2\n"}}},
		{"DOS lines", "a: 1\r\n---\r\nb: 2\r\n", []doc{{1, 1, "a: 1\r\n"}, {2, 3, "b: 2\r\n"}}},
		{"indented dashes are content", "a: |\n  ---\n  b\n", []doc{{1, 1, "a: |\n  ---\n  b\n"}}},
	} {
		docs, err := split("f", []byte(test.in))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		var got []doc
		for _, d := range docs {
			got = append(got, doc{d.number, d.line, string(d.data)})
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

// TestSplitLikeKubernetes compares the splitter with Kubernetes' own on files made of the relevant lines.
func TestSplitLikeKubernetes(t *testing.T) {
	line := rapid.SampledFrom([]string{"---", "--- # c", "---x", "--- ", "----", "a: 1", " ---", "# c", "", "...", "\t", "- a"})
	end := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			b.WriteString(line.Draw(t, "line") + end.Draw(t, "end"))
		}
		file := []byte(b.String())
		want, wantErr := kubernetesSplit(file)
		docs, err := split("f", file)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%q: got error %v, Kubernetes %v", file, err, wantErr)
		}
		if err != nil {
			return
		}
		var got []string
		for _, d := range docs {
			if !isBlank(d.data) {
				got = append(got, strings.ReplaceAll(string(d.data), "\r\n", "\n")) // as Kubernetes' reader
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q:\n%s", file, diff)
		}
	})
}

// kubernetesSplit returns the documents that have content.
func kubernetesSplit(file []byte) ([]string, error) {
	r := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	var docs []string
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		// It leaves a separator before a document that follows another separator.
		for bytes.HasPrefix(doc, []byte("---")) {
			_, doc, _ = bytes.Cut(doc, []byte("\n"))
		}
		if !isBlank(doc) {
			docs = append(docs, string(doc))
		}
	}
}
