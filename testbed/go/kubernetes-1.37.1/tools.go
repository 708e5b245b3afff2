//go:build tools

// Nothing here is compiled. The imports make go.mod and go.sum hold what the
// programs of this Kubernetes version need, so that they can be built from
// this folder.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
