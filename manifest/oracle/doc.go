// Package oracle holds the manifest room against Kubernetes itself: the API
// server's defaults and validation, kubectl's columns, the kubelet's QoS classes,
// OOM scores and expansion of variables. It has nothing but tests.
//
// It is a module of its own, because k8s.io/kubernetes brings two hundred others,
// which podrun must not depend on. It takes minutes to build; run it when a rule of
// the room changes, or Kubernetes' version:
//
//	cd manifest/oracle && go test
package oracle
