// An etcd server and nothing else: the flags and the behaviour are those of
// the upstream binary of the version that go.mod names.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
