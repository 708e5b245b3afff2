//go:build tools

// Nothing here is compiled. The imports make go.mod and go.sum hold what the
// program needs, so that it can be built from this folder.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)
