//go:build tools

// Package kubetools names the Kubernetes programs that the tests of the
// manifests run, so that a module of its own pins everything they are built of.
package kubetools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
