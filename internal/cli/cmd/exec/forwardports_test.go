package exec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestServicePortArguments checks that ports of a Service are mapped to ports of its pods; the default local
// port is the Service's.
func TestServicePortArguments(t *testing.T) {
	o := &pod.Object{Name: "web", Service: &pod.Service{Ports: []pod.ServicePort{
		{Name: "http", Protocol: "TCP", Port: 80, TargetPort: 8080}, {Name: "admin", Protocol: "TCP", Port: 81, TargetName: "adm"}, {Name: "dns", Protocol: "UDP", Port: 53, TargetPort: 53},
	}}}
	for word, want := range map[string]string{"80": "80:8080", "8000:80": "8000:8080", ":http": ":8080", "http": "80:8080", "9:81": "9:adm", "admin": "81:adm"} {
		if got, err := servicePortWords(o, []string{word}); err != nil || !reflect.DeepEqual(got, []string{want}) {
			t.Errorf("%s: %v, %v, want %s", word, got, err, want)
		}
	}
	for word, want := range map[string]string{"8080": "does not have a service port 8080", "x:nosuch": "service port nosuch", "53": "is UDP", "1:": "service port"} {
		if got, err := servicePortWords(o, []string{word}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
}
