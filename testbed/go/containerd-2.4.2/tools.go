//go:build tools

// Nothing here is compiled. The imports make go.mod and go.sum hold what the
// programs need, so that they can be built from this folder.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
