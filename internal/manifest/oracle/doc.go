// Package oracle compares package manifest with Kubernetes itself: the API server's defaults and validation,
// kubectl's columns, the kubelet's QoS classes, OOM scores and expansion of variables. It has only tests.
//
// It is a module of its own, because k8s.io/kubernetes has two hundred other dependencies, which podrun must
// not have. It takes minutes to build. Run it when a rule of package manifest or the version of Kubernetes
// changes:
//
//	cd internal/manifest/oracle && go test
package oracle
