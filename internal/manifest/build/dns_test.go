package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/pod"
)

func TestBuildNames(t *testing.T) {
	o := load(t, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {hostname: h, subdomain: sub, setHostnameAsFQDN: true, containers: [{name: c, image: i}], dnsPolicy: None, "+
		"hostAliases: [{ip: 192.0.2.1, hostnames: [a, b.c]}], "+
		"dnsConfig: {nameservers: [192.0.2.53], searches: [x.example.], options: [{name: ndots, value: '2'}, {name: rotate}]}}}")
	plan, err := build.Plan(o, map[string]pod.Image{"c": {Entrypoint: []string{"/x"}}}, build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := pod.DNS{Policy: "None", Nameservers: []string{"192.0.2.53"}, Searches: []string{"x.example."}, Options: []string{"ndots:2", "rotate"}}
	if diff := cmp.Diff(want, plan.DNS); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]pod.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a", "b.c"}}}, plan.HostAliases); diff != "" {
		t.Error(diff)
	}
	if plan.KernelHostname() != "h.sub.default.svc.cluster.local" || plan.Domain() != "sub.default.svc.cluster.local" {
		t.Errorf("names %q, %q", plan.KernelHostname(), plan.Domain())
	}
	plan.HostnameAsFQDN = false
	if plan.KernelHostname() != "h" {
		t.Errorf("hostname %q", plan.KernelHostname())
	}
}
