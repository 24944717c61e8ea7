package validation_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
)

func TestValidateNames(t *testing.T) {
	const c = "containers: [{name: a, image: i}]"
	many := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ") }
	for spec, want := range map[string]string{
		"dnsPolicy: None": "spec.dnsConfig: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
		"dnsPolicy: None, dnsConfig: {searches: [a]}":              "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
		"dnsConfig: {nameservers: [" + many(4, "192.0.2.1") + "]}": "must not have more than 3 nameservers",
		"dnsConfig: {nameservers: [one]}":                          `spec.dnsConfig.nameservers[0]: Invalid value: "one": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
		"dnsConfig: {nameservers: ['fe80::1%eth0']}":               "spec.dnsConfig.nameservers[0]: Invalid value",
		"dnsConfig: {searches: [" + many(33, "a") + "]}":           "must not have more than 32 search paths",
		"dnsConfig: {searches: [" + many(9, strings.Repeat("a", 63)+"."+strings.Repeat("b", 63)+"."+strings.Repeat("c", 63)+"."+strings.Repeat("d", 60)) + "]}": "spec.dnsConfig.searches: Invalid value: ",
		"dnsConfig: {searches: [-a]}":                                       `spec.dnsConfig.searches[0]: Invalid value: "-a"`,
		"dnsConfig: {searches: [., _srv.example.org.]}":                     "",
		"dnsConfig: {options: [{value: '1'}]}":                              "spec.dnsConfig.options[0]: Required value: must not be empty",
		`dnsConfig: {options: [{name: "a\nnameserver", value: "1.1.1.1"}]}`: "must not contain white space",
		"subdomain: Sub":                                                 `spec.subdomain: Invalid value: "Sub"`,
		"hostAliases: [{ip: x, hostnames: [a]}]":                         `spec.hostAliases[0].ip: Invalid value: "x"`,
		`hostAliases: [{ip: "::1", hostnames: ["a b"]}]`:                 `spec.hostAliases[0].hostnames[0]: Invalid value: "a b"`,
		"setHostnameAsFQDN: true, subdomain: " + strings.Repeat("s", 50): "is too long (64 characters is the max)",
		"setHostnameAsFQDN: true":                                        "",
	} {
		_, err := manifest.Load("x.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+c+", "+spec+"}}"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v\nwant %s", spec, err, want)
		}
	}
}
