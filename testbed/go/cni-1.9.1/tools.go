//go:build tools

// Nothing here is compiled. The import makes go.mod and go.sum hold what the
// program needs, so that it can be built from this folder.
package tools

import (
	_ "github.com/containernetworking/plugins/plugins/main/loopback"
)
