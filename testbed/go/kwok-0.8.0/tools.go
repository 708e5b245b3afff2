//go:build tools

// Nothing here is compiled. The imports make go.mod and go.sum hold what the
// program needs, so that it can be built from this folder.
package tools

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
