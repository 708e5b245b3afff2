// What the testbed's containers run: nothing, until they are asked to end.
// Static and alone in its image, it also serves as the pause container.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("idle:", os.Args[1:])
	<-asked
}
