package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/apis/batch"
	kbatchv1 "k8s.io/kubernetes/pkg/apis/batch/v1"
	"k8s.io/kubernetes/pkg/apis/batch/validation"
	kvalidation "k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/podrun/podrun/internal/manifest"
)

// TestValidateJobs: mistakes in Jobs with all kinds of rules are mistakes for the API server, too, at the
// same places, and there are no others.
func TestValidateJobs(t *testing.T) {
	text, err := os.ReadFile("../testdata/bad/jobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range strings.Split(string(text), "---\n") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var j batchv1.Job
			plain, err := yaml.ToJSON([]byte(doc))
			if err == nil {
				err = json.Unmarshal(plain, &j)
			}
			if err != nil {
				t.Fatal(err)
			}
			kbatchv1.SetObjectDefaults_Job(&j)
			var in batch.Job
			if err := kbatchv1.Convert_v1_Job_To_batch_Job(&j, &in, nil); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, e := range validation.ValidateJobSpec(&in.Spec, nil, field.NewPath("spec"), kvalidation.PodValidationOptions{}) {
				want = append(want, e.Field)
			}
			_, err = manifest.Load("job.yaml", []byte(doc))
			var mistakes *manifest.Errors
			if !errors.As(err, &mistakes) {
				t.Fatalf("%v", err)
			}
			var got []string
			for line := range strings.Lines(mistakes.Error()) {
				if m := regexp.MustCompile(`line \d+: (\S+): `).FindStringSubmatch(line); m != nil {
					got = append(got, m[1])
				}
			}
			ours := regexp.MustCompile(`^spec\.(template\.metadata|selector)`)
			want = slices.DeleteFunc(want, ours.MatchString)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
